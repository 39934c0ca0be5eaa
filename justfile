# The commands of the inner loop; CONTRIBUTING.md explains them. `just` (https://just.systems) runs the recipes of this
# file. Nothing else in the repository needs it, and each recipe is one cargo command that can be typed without it.

# Lists the recipes.
default:
    @just --list --unsorted

# Compiles one crate with its tests: `just check turnstone-store`.
check crate:
    cargo check -p {{crate}} --tests

# Runs the unit tests whose path contains a filter: `just unit budget::`.
unit filter="":
    cargo test --workspace --lib -- {{filter}}

# Runs one case on every store: `just case a_checkpoint_extends_the_lease`.
case name:
    cargo test --workspace --test it -- {{name}}

# Runs one case on one store (sqlite, sealed, postgres or pooled): `just on sealed a_checkpoint_extends_the_lease`.
on store name:
    cargo test --workspace --test it -- --include-ignored {{store}}::{{name}}

# Runs one area on one store: `just area conformance::leases postgres`.
area path store="sqlite":
    cargo test --workspace --test it -- {{path}}::{{store}}

# Runs the recorded engagements.
recorded:
    cargo test --workspace --test it -- recorded

# Checks the rules of the repository.
tidy filter="":
    cargo test --workspace --test tidy -- {{filter}}

# Writes generated pages again: `just bless checklist`, `just bless events`, `just bless lint`.
bless filter:
    TURNSTONE_BLESS=1 cargo test --workspace --test tidy -- {{filter}}

# Runs the lints.
lint:
    cargo clippy --workspace --all-targets --locked -- -D warnings

# Builds the pages of all crates, with private items, and refuses warnings.
doc:
    RUSTDOCFLAGS=-Dwarnings cargo doc --workspace --no-deps --document-private-items --locked

# Runs everything that a change has to pass.
ci:
    .ci/run
