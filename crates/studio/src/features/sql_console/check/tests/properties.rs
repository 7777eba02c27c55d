//! Properties of whatever passes.
