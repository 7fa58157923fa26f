//! Updates as runs of neighbouring words that were written at one time.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::address::{Address, PageId};
use crate::update::Update;

/// Neighbouring words that were written at one time, with 4 bytes per value.
#[derive(Serialize, Deserialize)]
struct Run<'a> {
    page: PageId,
    word: u32,
    time: u64,
    #[serde(borrow, with = "super::bytes")]
    values: std::borrow::Cow<'a, [u8]>,
}

fn continues(one: &Update, next: &Update) -> bool {
    let (at, then) = (one.address, next.address);
    at.page == then.page && at.word.checked_add(1) == Some(then.word) && one.time == next.time
}

pub(crate) fn serialize<S: Serializer>(
    updates: &[Update],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let runs = updates.chunk_by(continues).map(|run| {
        let values: Vec<u8> = run.iter().flat_map(|update| update.value.to_le_bytes()).collect();
        let Address { page, word } = run[0].address;
        Run { page, word, time: run[0].time, values: values.into() }
    });
    runs.collect::<Vec<_>>().serialize(serializer)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<Update>, D::Error> {
    let runs = Vec::<Run<'de>>::deserialize(deserializer)?;
    let mut updates = Vec::new();
    for Run { page, word, time, values } in runs {
        for (place, value) in values.chunks(4).enumerate() {
            let value = value.try_into().map_err(|_| D::Error::custom("words of 4 bytes"))?;
            let word = word.checked_add(place as u32);
            let word = word.ok_or_else(|| D::Error::custom("a word behind all pages"))?;
            let address = Address { page, word };
            updates.push(Update { address, time, value: u32::from_le_bytes(value) });
        }
    }
    Ok(updates)
}
