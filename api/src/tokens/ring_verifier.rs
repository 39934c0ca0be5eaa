//! The signatures of tokens, verified with ring. `jsonwebtoken` is built without a backend of its own.

use jsonwebtoken::crypto::{CryptoProvider, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{ErrorKind, Result, new_error};
use jsonwebtoken::signature::{Error, Verifier};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents,
    UnparsedPublicKey, VerificationAlgorithm,
};

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: |_, _| Err(new_error(ErrorKind::UnsupportedAlgorithm)),
    verifier_factory: verifier,
    key_utils: KeyUtils::new_unimplemented(),
};

/// Makes `jsonwebtoken` verify with ring in this process.
pub(super) fn install() {
    let _ = PROVIDER.install_default();
}

/// The parameters of an algorithm in ring.
enum Parameters {
    Rsa(&'static RsaParameters),
    Curve(&'static dyn VerificationAlgorithm),
}

/// A public key for one algorithm.
struct RingVerifier {
    algorithm: Algorithm,
    parameters: Parameters,
    key: DecodingKey,
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    let parameters = match algorithm {
        Algorithm::RS256 => Parameters::Rsa(&RSA_PKCS1_2048_8192_SHA256),
        Algorithm::RS384 => Parameters::Rsa(&RSA_PKCS1_2048_8192_SHA384),
        Algorithm::RS512 => Parameters::Rsa(&RSA_PKCS1_2048_8192_SHA512),
        Algorithm::PS256 => Parameters::Rsa(&RSA_PSS_2048_8192_SHA256),
        Algorithm::PS384 => Parameters::Rsa(&RSA_PSS_2048_8192_SHA384),
        Algorithm::PS512 => Parameters::Rsa(&RSA_PSS_2048_8192_SHA512),
        Algorithm::ES256 => Parameters::Curve(&ECDSA_P256_SHA256_FIXED),
        Algorithm::ES384 => Parameters::Curve(&ECDSA_P384_SHA384_FIXED),
        Algorithm::EdDSA => Parameters::Curve(&ED25519),
        _ => return Err(new_error(ErrorKind::UnsupportedAlgorithm)),
    };
    if key.family() != algorithm.family() {
        return Err(new_error(ErrorKind::InvalidKeyFormat));
    }
    Ok(Box::new(RingVerifier { algorithm: *algorithm, parameters, key: key.clone() }))
}

impl JwtVerifier for RingVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

impl Verifier<Vec<u8>> for RingVerifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), Error> {
        let verified = match (&self.parameters, self.key.kind()) {
            (Parameters::Rsa(parameters), DecodingKeyKind::RsaModulusExponent { n, e }) => {
                RsaPublicKeyComponents { n, e }.verify(parameters, message, signature)
            }
            (Parameters::Curve(parameters), DecodingKeyKind::SecretOrDer(key)) => {
                UnparsedPublicKey::new(*parameters, key).verify(message, signature)
            }
            _ => return Err(Error::new()),
        };
        verified.map_err(|_| Error::new())
    }
}
