//! No text makes the cursor's decoder panic, and what it accepts it would have written itself.

#![no_main]

use libfuzzer_sys::fuzz_target;
use studio::platform::paging::Scope;

fuzz_target!(|text: &str| {
    let scope = Scope::new("fuzz", b"");
    if let Some(key) = scope.decode(text) {
        assert_eq!(scope.encode(key), text);
    }
});
