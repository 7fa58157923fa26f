use super::{CREDIT, Congested, FRAME_MAX, Incoming, Malformed, Outgoing, Received};
use proptest::prelude::*;

const MAX: usize = 16 * 1024 * 1024;

fn is_empty(out: &Outgoing) -> bool {
    out.ready.is_empty() && out.pieces.is_empty()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn messages_arrive_whole_in_order_and_within_credit(
        lengths in prop::collection::vec(prop_oneof![0..100_usize, 0..600_000_usize], 1..12),
        cuts in prop::collection::vec(1..200_000_usize, 1..20),
    ) {
        let (mut out, mut input) = (Outgoing::new(MAX), Incoming::new(MAX));
        let messages: Vec<Vec<u8>> =
            lengths.iter().enumerate().map(|(n, length)| vec![n as u8; *length]).collect();
        for message in &messages {
            out.message(message).unwrap();
        }
        out.goodbye();
        let (mut arrived, mut over, mut uncredited) = (Vec::new(), false, 0);
        let mut cuts = cuts.iter().cycle();
        while !is_empty(&out) {
            let ready = out.ready();
            prop_assert!(!ready.is_empty(), "stuck without credit");
            let bytes = ready[..ready.len().min(*cuts.next().unwrap())].to_vec();
            out.sent(bytes.len());
            uncredited += bytes.len();
            prop_assert!(uncredited <= CREDIT + FRAME_MAX, "{uncredited} bytes on their way");
            let mut given = Vec::new();
            input.take(&bytes, |received| match received {
                Received::Message(message) => arrived.push(message),
                Received::Goodbye => over = true,
                Received::Credit(bytes) => given.push(bytes),
            }).unwrap();
            prop_assert!(given.is_empty());
            if let Some(bytes) = input.owed() {
                uncredited -= bytes;
                out.credited(bytes);
            }
        }
        prop_assert_eq!(arrived, messages);
        prop_assert!(over);
    }

    #[test]
    fn hostile_bytes_are_refused_or_bounded(
        parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 0..20),
    ) {
        let mut input = Incoming::new(1000);
        for part in parts {
            let taken = input.take(&part, |received| {
                if let Received::Message(message) = received {
                    assert!(message.len() <= 1000);
                }
            });
            if taken == Err(Malformed) {
                return Ok(());
            }
        }
    }
}

#[test]
fn credit_frames_and_signs_of_life_need_no_credit() {
    let mut out = Outgoing::new(MAX);
    out.message(&vec![0; 2 * CREDIT]).unwrap();
    let waiting = out.ready().len();
    out.alive();
    out.give_credit(77);
    let mut input = Incoming::new(MAX);
    let mut credit = 0;
    while !out.ready().is_empty() {
        let bytes = out.ready().to_vec();
        out.sent(bytes.len());
        let each = |received| {
            if let Received::Credit(bytes) = received {
                credit = bytes;
            }
        };
        input.take(&bytes, each).unwrap();
    }
    assert_eq!(credit, 77);
    assert!(waiting <= CREDIT && !is_empty(&out), "the rest waits for credit");
}

#[test]
fn too_much_is_refused_on_both_sides() {
    let mut out = Outgoing::new(1000);
    assert_eq!(out.message(&[0; 900]), Ok(()));
    assert_eq!(out.message(&[0; 900]), Err(Congested));
    let mut input = Incoming::new(100);
    assert_eq!(input.take(out.ready(), |_| {}), Err(Malformed));
    let too_long = ((FRAME_MAX + 1) as u32).to_le_bytes();
    assert_eq!(Incoming::new(MAX).take(&too_long, |_| {}), Err(Malformed));
}
