//! The functions that a query may call. All are of `pg_catalog`, none writes, waits, reads files or
//! settings, and none makes a long value out of a short one by a number alone (`repeat`, `lpad`,
//! `generate_series` and `format` are left out for that).

/// How a function is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `pg_catalog.name(…)`.
    Call,
    /// `NAME(…)`, part of the grammar and not a name of the catalogue.
    Syntax,
    /// `NAME` without brackets.
    Keyword,
}

/// A function of the list.
#[derive(Debug, PartialEq, Eq)]
pub struct Called {
    pub name: &'static str,
    pub form: Form,
}

const fn call(name: &'static str) -> Called {
    Called { name, form: Form::Call }
}

const fn syntax(name: &'static str) -> Called {
    Called { name, form: Form::Syntax }
}

const fn keyword(name: &'static str) -> Called {
    Called { name, form: Form::Keyword }
}

/// Every function of the list, by kind.
pub const FUNCTIONS: &[Called] = &[
    // Part of the grammar.
    syntax("coalesce"),
    syntax("greatest"),
    syntax("grouping"),
    syntax("least"),
    syntax("nullif"),
    keyword("current_date"),
    keyword("current_time"),
    keyword("current_timestamp"),
    keyword("localtime"),
    keyword("localtimestamp"),
    // Aggregates.
    call("array_agg"),
    call("avg"),
    call("bit_and"),
    call("bit_or"),
    call("bool_and"),
    call("bool_or"),
    call("corr"),
    call("count"),
    call("covar_pop"),
    call("covar_samp"),
    call("every"),
    call("jsonb_agg"),
    call("jsonb_object_agg"),
    call("max"),
    call("min"),
    call("mode"),
    call("percentile_cont"),
    call("percentile_disc"),
    call("regr_count"),
    call("regr_intercept"),
    call("regr_r2"),
    call("regr_slope"),
    call("stddev"),
    call("stddev_pop"),
    call("stddev_samp"),
    call("string_agg"),
    call("sum"),
    call("var_pop"),
    call("var_samp"),
    call("variance"),
    // Windows.
    call("cume_dist"),
    call("dense_rank"),
    call("first_value"),
    call("lag"),
    call("last_value"),
    call("lead"),
    call("nth_value"),
    call("ntile"),
    call("percent_rank"),
    call("rank"),
    call("row_number"),
    // Texts.
    call("ascii"),
    call("btrim"),
    call("char_length"),
    call("character_length"),
    call("chr"),
    call("concat"),
    call("concat_ws"),
    call("initcap"),
    call("left"),
    call("length"),
    call("lower"),
    call("ltrim"),
    call("md5"),
    call("octet_length"),
    call("overlay"),
    call("position"),
    call("regexp_count"),
    call("regexp_instr"),
    call("regexp_like"),
    call("regexp_match"),
    call("regexp_replace"),
    call("regexp_substr"),
    call("replace"),
    call("reverse"),
    call("right"),
    call("rtrim"),
    call("split_part"),
    call("starts_with"),
    call("strpos"),
    call("substr"),
    call("substring"),
    call("to_char"),
    call("to_hex"),
    call("to_number"),
    call("translate"),
    call("upper"),
    // Numbers.
    call("abs"),
    call("cbrt"),
    call("ceil"),
    call("ceiling"),
    call("div"),
    call("exp"),
    call("floor"),
    call("gcd"),
    call("lcm"),
    call("ln"),
    call("log"),
    call("mod"),
    call("pi"),
    call("power"),
    call("round"),
    call("sign"),
    call("sqrt"),
    call("trunc"),
    call("width_bucket"),
    // Times.
    call("age"),
    call("clock_timestamp"),
    call("date_bin"),
    call("date_part"),
    call("date_trunc"),
    call("extract"),
    call("isfinite"),
    call("justify_days"),
    call("justify_hours"),
    call("justify_interval"),
    call("make_date"),
    call("make_interval"),
    call("make_timestamp"),
    call("make_timestamptz"),
    call("now"),
    call("statement_timestamp"),
    call("timezone"),
    call("to_date"),
    call("to_timestamp"),
    // Documents, arrays and addresses.
    call("array_length"),
    call("array_position"),
    call("array_to_string"),
    call("cardinality"),
    call("family"),
    call("host"),
    call("jsonb_array_length"),
    call("jsonb_build_array"),
    call("jsonb_build_object"),
    call("jsonb_extract_path"),
    call("jsonb_extract_path_text"),
    call("jsonb_pretty"),
    call("jsonb_strip_nulls"),
    call("jsonb_typeof"),
    call("masklen"),
    call("num_nonnulls"),
    call("num_nulls"),
    call("string_to_array"),
    call("to_jsonb"),
];

/// The function of the list with that name, in lower case.
pub fn find(name: &str) -> Option<&'static Called> {
    FUNCTIONS.iter().find(|called| called.name == name)
}
