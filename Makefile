# `make help` lists what there is. `make run` and `make test` do all of their own set-up.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help setup run show test check bench-permits bench-history bench-limits clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Install what is missing: PostgreSQL, PgBouncer, faketime, a C linker
	@scripts/setup

run: setup ## Two replicas of Studio on 127.0.0.1:8080 and :8081, with a private PostgreSQL and demo data
	cargo build --release -p studio
	target/release/studio demo run

show: ## Against `make run`: 20 queries and exports of one user at once; who is admitted, who refused
	cargo build --release -p studio
	target/release/studio demo show

test: setup ## All tests: real PostgreSQL, real processes
	cargo test --workspace --features pg-limits/axum

check: ## Formatting and lints
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --features pg-limits/axum -- -D warnings

bench-permits: setup ## What a permit costs, beside two trivial upserts
	cargo run --release -q -p bench --bin bench-permits

bench-history: setup ## What a page and an export cost at five million rows, beside psql
	cargo run --release -q -p bench --bin bench-history

bench-limits: setup ## What the limits on tokens cost a request, and a count in a window, beside the same without
	cargo run --release -q -p bench --bin bench-limits

clean: ## Remove what `make run` keeps (the demo's PostgreSQL and its data)
	rm -rf .run
