//! The program `turnstone`. It is a small file over a library, so that the library compiles beside the crates that it uses.

/// Requests and turns allocate many small texts on several threads; the allocator of the C library takes a third of their
/// processor time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    turnstone_cli::run()
}
