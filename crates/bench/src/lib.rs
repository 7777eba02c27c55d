//! What the benchmarks share: how a figure is judged, and what machine it was measured on.

mod machine;
mod verdict;

pub use machine::describe;
pub use verdict::Verdicts;

/// The middle value of a few runs.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
