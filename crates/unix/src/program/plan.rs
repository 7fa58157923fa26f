//! The steps by which a launcher maps a program into its address space: records of one system call
//! each. Pure.

use crate::program::elf::{Elf, Position, Segment};
use crate::program::sites::Site;
use kyocho_arch::launcher::{END, PLAN_BYTES_MAX, RECORD_WORDS, SITE, ZERO};

const PAGE: u64 = 4096;
const READ_WRITE: u64 = (libc::PROT_READ | libc::PROT_WRITE) as u64;

/// The records so far.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    words: Vec<u64>,
}

impl Plan {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds one system call.
    pub(crate) fn call(&mut self, number: libc::c_long, arguments: &[u64]) {
        self.record(number as u64, arguments);
    }

    fn record(&mut self, first: u64, rest: &[u64]) {
        let end = self.words.len() + RECORD_WORDS;
        self.words.push(first);
        self.words.extend(rest);
        self.words.resize(end, 0);
    }

    /// Maps the program `elf` from descriptor `file`, with its `sites` rewritten. If its addresses
    /// are not fixed, it is mapped at `place`. Returns what must be added to its addresses.
    pub(crate) fn map(&mut self, elf: &Elf, place: u64, file: u64, sites: &[Site]) -> u64 {
        let (start, bytes) = elf.extent();
        let bias = match elf.position {
            Position::Fixed => 0,
            Position::Anywhere => place.wrapping_sub(start),
        };
        // One mapping for all segments, so that nothing else is mapped between them.
        self.anonymous(start.wrapping_add(bias), bytes, 0);
        for segment in &elf.segments {
            self.segment(segment, bias, file, sites);
        }
        bias
    }

    fn segment(&mut self, segment: &Segment, bias: u64, file: u64, sites: &[Site]) {
        let protection = protection(segment.flags);
        let address = segment.address.wrapping_add(bias);
        let page = address & !(PAGE - 1);
        let skipped = address - page;
        let mapped = (segment.in_file + skipped).next_multiple_of(PAGE);
        if segment.in_file > 0 {
            let flags = (libc::MAP_PRIVATE | libc::MAP_FIXED) as u64;
            let offset = segment.offset - skipped;
            let sites = sites.iter().filter(|site| segment.holds(site));
            let mut sites = sites.peekable();
            let first = if sites.peek().is_some() { READ_WRITE } else { protection };
            self.call(libc::SYS_mmap, &[page, mapped, first, flags, file, offset]);
            for site in sites {
                self.record(SITE, &[page + (site.offset - offset), site.old, site.new]);
            }
            if first != protection {
                self.call(libc::SYS_mprotect, &[page, mapped, protection]);
            }
        }
        let from_file = if segment.in_file > 0 { mapped } else { 0 };
        let all = (segment.in_memory + skipped).next_multiple_of(PAGE);
        if all > from_file {
            self.anonymous(page + from_file, all - from_file, protection);
        }
        let (data_end, file_end) = (address + segment.in_file, page + from_file);
        let writable = segment.flags & libc::PF_W != 0;
        if segment.in_memory > segment.in_file && file_end > data_end && writable {
            self.record(ZERO, &[data_end, file_end - data_end]);
        }
    }

    fn anonymous(&mut self, address: u64, bytes: u64, protection: u64) {
        let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED) as u64;
        self.call(libc::SYS_mmap, &[address, bytes, protection, flags, u64::MAX, 0]);
    }

    /// The plan as the launcher reads it, followed by the thread's name. `address` is where the
    /// plan will be in the client. `None` if it is too long.
    pub(crate) fn finish(mut self, name: &[u8], address: u64) -> Option<Vec<u8>> {
        const NAME_BYTES: usize = 16;
        let text = address + ((self.words.len() + 2 * RECORD_WORDS) * size_of::<u64>()) as u64;
        self.call(libc::SYS_prctl, &[libc::PR_SET_NAME as u64, text]);
        self.record(END, &[]);
        let mut bytes: Vec<u8> = self.words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.extend(name.iter().take(NAME_BYTES - 1).chain([&0]));
        (bytes.len() <= PLAN_BYTES_MAX).then_some(bytes)
    }
}

impl Segment {
    /// Whether the segment contains `site` as code.
    fn holds(&self, site: &Site) -> bool {
        self.flags & libc::PF_X != 0
            && site.offset >= self.offset
            && site.offset + size_of::<u64>() as u64 <= self.offset + self.in_file
    }
}

fn protection(flags: u32) -> u64 {
    let pairs = [
        (libc::PF_R, libc::PROT_READ),
        (libc::PF_W, libc::PROT_WRITE),
        (libc::PF_X, libc::PROT_EXEC),
    ];
    pairs.iter().filter(|(flag, _)| flags & flag != 0).map(|(_, bit)| *bit as u64).sum()
}

#[cfg(test)]
mod tests {
    use super::Plan;
    use crate::program::elf::{Elf, Position, Segment};
    use crate::program::sites::Site;
    use kyocho_arch::launcher::{END, RECORD_WORDS, SITE, ZERO};

    fn records(plan: Plan) -> Vec<Vec<u64>> {
        let bytes = plan.finish(b"a-name-longer-than-fifteen", 0x1000).unwrap();
        let words: Vec<u64> = bytes
            .chunks_exact(8)
            .map(|chunk| u64::from_le_bytes(chunk.try_into().unwrap()))
            .collect();
        words.chunks_exact(RECORD_WORDS).map(<[u64]>::to_vec).collect()
    }

    #[test]
    fn data_with_a_tail_is_mapped_zeroed_and_extended() {
        let data = Segment {
            address: 0x40_1010,
            offset: 0x1010,
            in_file: 0x20,
            in_memory: 0x3000,
            flags: 6,
        };
        let elf = Elf {
            personality: crate::options::Personality::Linux,
            position: Position::Fixed,
            entry: 0x40_1010,
            headers: None,
            headers_count: 1,
            segments: vec![data],
            interpreter: None,
        };
        let mut plan = Plan::new();
        assert_eq!(plan.map(&elf, 0, 9, &[]), 0);
        let records = records(plan);
        let mmap = libc::SYS_mmap as u64;
        assert_eq!(records[0][..4], [mmap, 0x40_1000, 0x4000, 0]);
        assert_eq!(records[1], [mmap, 0x40_1000, 0x1000, 3, 0x12, 9, 0x1000]);
        assert_eq!(records[2][..4], [mmap, 0x40_2000, 0x3000, 3]);
        assert_eq!(records[3][..3], [ZERO, 0x40_1030, 0xfd0]);
        assert_eq!(records[5][0], END);
    }

    #[test]
    fn code_is_rewritten_before_it_can_be_run_and_data_is_not() {
        let segment = |address, flags| Segment {
            address,
            offset: address - 0x40_0000,
            in_file: 0x1000,
            in_memory: 0x1000,
            flags,
        };
        let elf = Elf {
            personality: crate::options::Personality::Linux,
            position: Position::Fixed,
            entry: 0x40_1000,
            headers: None,
            headers_count: 2,
            segments: vec![segment(0x40_1000, 5), segment(0x40_2000, 6)],
            interpreter: None,
        };
        let site = |offset| Site { offset, old: 1, new: 2 };
        let mut plan = Plan::new();
        plan.map(&elf, 0, 9, &[site(0x1ff8), site(0x1ff9), site(0x2008)]);
        let records = records(plan);
        let [mmap, mprotect] = [libc::SYS_mmap as u64, libc::SYS_mprotect as u64];
        assert_eq!(records[1][..4], [mmap, 0x40_1000, 0x1000, 3]);
        assert_eq!(records[2][..4], [SITE, 0x40_1ff8, 1, 2]);
        assert_eq!(records[3][..4], [mprotect, 0x40_1000, 0x1000, 5]);
        assert_eq!(records[4][..4], [mmap, 0x40_2000, 0x1000, 3]);
        assert_eq!(records[6][0], END);
    }

    #[test]
    fn the_name_is_cut_where_the_host_cuts_it_and_lies_behind_the_records() {
        let bytes = Plan::new().finish(b"a-name-longer-than-fifteen", 0x1000).unwrap();
        assert_eq!(&bytes[2 * 8 * RECORD_WORDS..], b"a-name-longer-t\0");
        let named = u64::from_le_bytes(bytes[16..24].try_into().unwrap());
        assert_eq!(named, 0x1000 + 2 * 8 * RECORD_WORDS as u64);
    }
}
