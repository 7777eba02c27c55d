//! Times as the API gives them: RFC 3339, UTC, microseconds. Written by hand, because an export writes millions.

/// The length of every time.
pub const LENGTH: usize = 27;

const MICROSECONDS_A_DAY: i64 = 86_400_000_000;

/// Microseconds since 1970 as `2026-01-31T23:59:59.000001Z`. Years are held between 0 and 9999.
pub fn rfc3339(microseconds: i64) -> [u8; LENGTH] {
    const LOWEST: i64 = -62_167_219_200_000_000;
    const HIGHEST: i64 = 253_402_300_799_999_999;
    let microseconds = microseconds.clamp(LOWEST, HIGHEST);
    let (year, month, day) = civil(microseconds.div_euclid(MICROSECONDS_A_DAY));
    let of_day = microseconds.rem_euclid(MICROSECONDS_A_DAY);
    let seconds = of_day / 1_000_000;
    let mut text = *b"0000-00-00T00:00:00.000000Z";
    let fields = [
        (0, 4, year),
        (5, 2, month),
        (8, 2, day),
        (11, 2, seconds / 3_600),
        (14, 2, seconds / 60 % 60),
        (17, 2, seconds % 60),
        (20, 6, of_day % 1_000_000),
    ];
    for (start, width, value) in fields {
        digits(text.get_mut(start..start + width), value);
    }
    text
}

fn digits(field: Option<&mut [u8]>, mut value: i64) {
    for digit in field.into_iter().flatten().rev() {
        // A remainder of ten fits a byte.
        *digit = b'0' + u8::try_from(value % 10).unwrap_or(0);
        value /= 10;
    }
}

/// The date of a day since 1970 (Howard Hinnant's `civil_from_days`).
const fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + if month <= 2 { 1 } else { 0 };
    (year, month, day)
}

/// The same as a string.
pub fn text(microseconds: i64) -> String {
    rfc3339(microseconds).iter().copied().map(char::from).collect()
}

/// Parses an RFC 3339 time with any offset, to microseconds since 1970.
pub fn parse(text: &str) -> Option<i64> {
    text.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_microsecond)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{parse, text};

    #[test]
    fn times_have_their_usual_form() {
        assert_eq!(text(0), "1970-01-01T00:00:00.000000Z");
        assert_eq!(text(-1), "1969-12-31T23:59:59.999999Z");
        assert_eq!(text(951_782_400_000_001), "2000-02-29T00:00:00.000001Z");
        assert_eq!(text(i64::MAX), "9999-12-31T23:59:59.999999Z");
        assert_eq!(text(i64::MIN), "0000-01-01T00:00:00.000000Z");
    }

    proptest! {
        #[test]
        fn every_time_survives_being_written_and_read(time in -62_135_596_800_000_000_i64..253_402_200_000_000_000) {
            prop_assert_eq!(parse(&text(time)), Some(time));
        }
    }
}
