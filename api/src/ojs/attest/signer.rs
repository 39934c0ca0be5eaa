//! The key that signs receipts, and the keys that verify them.
//!
//! It comes from the configuration. Otherwise the first process that needs one makes it, and all others find it in the
//! store. Every public key that ever signed stays there, so a receipt outlives its key.

use crate::api::Shared;
use crate::reply::Failure;
use ring::rand::SystemRandom;
use turnstone_ojs::OjsError;
use turnstone_ojs::attest::{PublicKey, Signer, new_seed};
use turnstone_store::ServerKey;

/// The fleet's own key.
const SEED: &str = "attest.seed";
/// Public keys, followed by their ids.
const PUBLIC: &str = "attest.public.";

/// Returns the key that signs.
pub(crate) async fn signer(app: &Shared) -> Result<&Signer, Failure> {
    app.signer.get_or_try_init(|| made_or_found(app)).await
}

async fn made_or_found(app: &Shared) -> Result<Signer, Failure> {
    let (control, created_at) = (&app.api.store.control, app.api.clock.now());
    let broken = |why: String| Failure(OjsError::internal(format!("The key that signs receipts {why}.")));
    let signer = match &app.api.options.attest_key {
        Some(signer) => signer.clone(),
        None => {
            let body = new_seed(&SystemRandom::new()).map_err(broken)?;
            let kept = control.keep_key(ServerKey { name: SEED.to_owned(), body, created_at }).await?;
            Signer::from_seed(&kept.body).map_err(broken)?
        }
    };
    let key = signer.public_key();
    let name = format!("{PUBLIC}{}", key.id);
    control.keep_key(ServerKey { name, body: key.value.clone(), created_at }).await?;
    Ok(signer)
}

/// Returns every key with which this fleet ever signed.
pub(crate) async fn public_keys(app: &Shared) -> Result<Vec<PublicKey>, Failure> {
    // A fleet that has not signed anything yet publishes the key that it is going to sign with.
    signer(app).await?;
    let kept = app.api.store.control.keys(PUBLIC).await?;
    Ok(kept.iter().filter_map(|key| PublicKey::read(&key.body).ok()).collect())
}
