//! Promises kept, and promises that fall short.

/// Prints each figure beside its promise and remembers what fell short.
#[derive(Debug, Default)]
pub struct Verdicts {
    short: Vec<String>,
}

#[expect(clippy::print_stdout, reason = "a benchmark's output is what it prints")]
impl Verdicts {
    /// A figure that must not be above its promise.
    pub fn at_most(&mut self, what: &str, figure: f64, promise: f64) {
        self.judge(what, figure, promise, "<=", figure <= promise);
    }

    /// A figure that must not be below its promise.
    pub fn at_least(&mut self, what: &str, figure: f64, promise: f64) {
        self.judge(what, figure, promise, ">=", figure >= promise);
    }

    fn judge(&mut self, what: &str, figure: f64, promise: f64, sign: &str, is_kept: bool) {
        let word = if is_kept { "ok" } else { "SHORT" };
        println!("{word:>5}  {what}: {figure:.2} (promised {sign} {promise})");
        if !is_kept {
            self.short.push(format!("{what} {figure:.2}, promised {sign} {promise}"));
        }
    }

    /// The last line: `PASS`, or what fell short.
    pub fn last_line(&self) -> String {
        if self.short.is_empty() {
            return "PASS".to_owned();
        }
        format!("SHORT: {}", self.short.join("; "))
    }

    /// Whether every promise was kept.
    pub fn is_pass(&self) -> bool {
        self.short.is_empty()
    }
}
