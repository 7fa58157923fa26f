//! Authentication of images: the build that wrote it, and a seal (HMAC-SHA-256) with a key that
//! only the user has.
//!
//! ```text
//! magic 8 | format 4 | build 32 | bytes of the contents 8 | contents | seal 32
//! ```
//!
//! The key is made at its first use, in `$XDG_STATE_HOME/kyocho/image.key` or
//! `~/.local/state/kyocho/image.key`, readable only by its owner. A process that can read it can
//! run programs as that user anyway, so a sealed image grants no additional rights.

use super::{ImageError, discard, write_new_file};
use hmac::{Hmac, Mac};
use kyocho_library::prelude;
use kyocho_vm::compiler::instruction::Opcode;
use kyocho_vm::machine::control;
use sha2::{Digest, Sha256};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::{env, fs};

const MAGIC: &[u8; 8] = b"KyochoIm";
/// Changes whenever the meaning of any later byte changes.
const FORMAT: u32 = 2;
const HASH_BYTES: usize = 32;
const HEADER_BYTES: usize = 8 + 4 + HASH_BYTES + 8;

type Result<T> = core::result::Result<T, ImageError>;

/// A hash of this build's instructions, primitives and prelude. Code in an image refers to them by
/// number.
fn build() -> [u8; HASH_BYTES] {
    let mut hash = Sha256::new();
    let mut add = |text: &str| {
        hash.update(text);
        hash.update([0]);
    };
    add(env!("CARGO_PKG_VERSION"));
    add(env::consts::ARCH);
    Opcode::ALL.iter().for_each(|opcode| add(&format!("{opcode:?}")));
    control::primitives().iter().for_each(|primitive| add(primitive.name));
    control::procedures().for_each(|(_, procedure)| add(procedure.name));
    for (name, text) in prelude::SOURCES {
        add(name);
        add(text);
    }
    hash.finalize().into()
}

fn header(contents_bytes: usize) -> Vec<u8> {
    let mut header = MAGIC.to_vec();
    header.extend(FORMAT.to_le_bytes());
    header.extend(build());
    header.extend((contents_bytes as u64).to_le_bytes());
    header
}

fn keyed(key: &[u8]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).expect("HMAC takes keys of any length")
}

/// The content of a file for these image contents.
pub(super) fn sealed(contents: &[u8]) -> Result<Vec<u8>> {
    Ok(sealed_with(&key(&key_path()?)?, contents))
}

pub(super) fn sealed_with(key: &[u8], contents: &[u8]) -> Vec<u8> {
    let mut image = header(contents.len());
    image.extend(contents);
    let seal = keyed(key).chain_update(&image).finalize().into_bytes();
    image.extend(seal);
    image
}

/// The image contents of a file.
pub(super) fn opened(image: Vec<u8>) -> Result<Vec<u8>> {
    // A file of another type is recognised without a key.
    if !image.starts_with(MAGIC) {
        return Err(ImageError::NoImage);
    }
    opened_with(&key(&key_path()?)?, image)
}

pub(super) fn opened_with(key: &[u8], mut image: Vec<u8>) -> Result<Vec<u8>> {
    if !image.starts_with(MAGIC) {
        return Err(ImageError::NoImage);
    }
    let found = image.len() as u64;
    let least = (HEADER_BYTES + HASH_BYTES) as u64;
    if found < least {
        return Err(ImageError::WrongLength { announced: least, found });
    }
    let announced = header(0);
    if image[..HEADER_BYTES - 8] != announced[..HEADER_BYTES - 8] {
        return Err(ImageError::OtherBuild);
    }
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&image[HEADER_BYTES - 8..HEADER_BYTES]);
    let announced = u64::from_le_bytes(bytes).saturating_add(least);
    if announced != found {
        return Err(ImageError::WrongLength { announced, found });
    }
    let seal = image.split_off(image.len() - HASH_BYTES);
    keyed(key).chain_update(&image).verify_slice(&seal).map_err(|_| ImageError::WrongSeal)?;
    image.drain(..HEADER_BYTES);
    Ok(image)
}

fn key_path() -> Result<PathBuf> {
    let set = |name| env::var_os(name).filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let state = set("XDG_STATE_HOME").or_else(|| Some(set("HOME")?.join(".local/state")));
    Ok(state.ok_or(ImageError::NoHome)?.join("kyocho/image.key"))
}

/// The user's key, made if it does not exist.
fn key(path: &Path) -> Result<Vec<u8>> {
    let failed = |error| ImageError::Key(path.to_path_buf(), error);
    match fs::read(path) {
        Ok(key) if key.len() == HASH_BYTES => return Ok(key),
        Ok(_) => {
            let error = std::io::Error::other(
                "is not 32 bytes long; images need the one they were saved with",
            );
            return Err(failed(error));
        }
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(error)),
        Err(_) => {}
    }
    let mut key = vec![0; HASH_BYTES];
    getrandom::fill(&mut key).map_err(|error| failed(std::io::Error::other(error.to_string())))?;
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    let new = write_new_file(path, &key).map_err(failed)?;
    // If another process has made a key meanwhile, that key is kept, because images may be sealed
    // with it already.
    let linked = fs::hard_link(&new, path);
    discard(&new);
    linked.or_else(|error| match error.kind() {
        ErrorKind::AlreadyExists => Ok(()),
        _ => Err(failed(error)),
    })?;
    fs::read(path).map_err(failed)
}
