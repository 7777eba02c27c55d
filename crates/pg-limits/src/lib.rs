//! pg-limits
