//! Exact memory and cache lines of each structure, as published.

use kyocho_pagetable::{
    Clustered, ClusteredLine, FrameNumber, Guarded, Hashed, LineSet, Linear, PageNumber, PageTable,
    Radix, Rights,
};

fn page(number: u64) -> PageNumber {
    PageNumber::new(number).expect("52 bits")
}

fn map<T: PageTable>(table: &mut T, number: u64) {
    let frame = FrameNumber::new(number % 1000).expect("43 bits");
    table.map(page(number), frame, Rights::READ).expect("in reach");
}

fn lines<T: PageTable>(table: &T, number: u64) -> usize {
    let mut lines = LineSet::default();
    assert!(!table.walk(page(number), &mut lines).is_empty(), "page {number} is not mapped");
    lines.count()
}

#[test]
fn radix_walk_reads_one_cache_line_for_each_level() {
    let mut four = Radix::<4>::new();
    let mut six = Radix::<6>::new();
    map(&mut four, 0x1234_5678);
    map(&mut six, 0x1234_5678);
    assert_eq!((lines(&four, 0x1234_5678), lines(&six, 0x1234_5678)), (4, 6));
    assert!(four.bytes() >= 4 * 4096);
}

#[test]
fn dense_space_costs_eight_bytes_a_page_and_one_line_a_walk_in_a_table_of_lines() {
    let mut table = ClusteredLine::new();
    (0..1 << 12).for_each(|number| map(&mut table, number));
    assert_eq!(table.bytes(), 8 << 12);
    assert!((0..1 << 12).all(|number| lines(&table, number) == 1));
}

#[test]
fn a_linear_table_takes_the_pages_that_were_written() {
    let mut table = Linear::new(&(page(0)..=page((1 << 20) - 1)));
    let bookkeeping = table.bytes();
    assert_eq!(bookkeeping, (1 << 20) / 512);
    map(&mut table, 5);
    map(&mut table, 6);
    map(&mut table, 600);
    assert_eq!(table.bytes() - bookkeeping, 2 * 4096);
    assert_eq!(lines(&table, 600), 1);
}

#[test]
fn nodes_have_the_published_sizes() {
    // Talluri, Hill and Khalidi: 24 bytes for a hashed node, 8 s + 16 for a cluster of s pages,
    // plus the heads of the chains. The heads here take 4 bytes each, and an arena keeps an eighth
    // in reserve.
    let blocks = 512;
    let heads = |nodes: usize| 4 * nodes.next_power_of_two();
    let expect = |bytes: usize, nodes: usize, node_bytes: usize| {
        let least = nodes * node_bytes + heads(nodes);
        assert!((least..least * 9 / 8 + node_bytes).contains(&bytes), "{bytes} of {least}");
    };
    let (mut hashed, mut four, mut sixteen) =
        (Hashed::new(), Clustered::<4>::new(), Clustered::<16>::new());
    for number in 0..16 * blocks as u64 {
        map(&mut hashed, number);
        map(&mut four, number);
        map(&mut sixteen, number);
    }
    expect(hashed.bytes(), 16 * blocks, 24);
    expect(four.bytes(), 4 * blocks, 48);
    expect(sixteen.bytes(), blocks, 144);
}

#[test]
fn a_superpage_is_a_single_word_in_a_cluster_and_a_leaf_in_a_guarded_tree() {
    let block = page(0x7_0000).block();
    let run = FrameNumber::new(64).unwrap();
    let mut clustered = Clustered::<16>::new();
    let empty = clustered.bytes();
    clustered.map_block(block, run, Rights::READ, u16::MAX).unwrap();
    assert_eq!(clustered.bytes() - empty, 4 * 24, "the arena's first growth");
    assert_eq!(lines(&clustered, 0x7_0005), 2);
    let mut guarded = Guarded::new();
    let root = guarded.bytes();
    guarded.map_block(block, run, Rights::READ, u16::MAX).unwrap();
    assert_eq!((guarded.bytes(), lines(&guarded, 0x7_0005)), (root, 1));
    let translation = guarded.lookup(page(0x7_0005)).unwrap();
    assert_eq!(translation.frame.get(), 69);
}

#[test]
fn a_partial_sub_block_maps_the_pages_of_its_mask() {
    let block = page(0).block();
    let mut table = Clustered::<16>::new();
    table.map_block(block, FrameNumber::new(16).unwrap(), Rights::READ, 0b1010).unwrap();
    let frames: Vec<_> =
        (0..4).map(|index| table.lookup(page(index)).map(|found| found.frame.get())).collect();
    assert_eq!(frames, [None, Some(17), None, Some(19)]);
    // A page at its place joins the compact entry; another one demotes the block.
    table.map(page(0), FrameNumber::new(16).unwrap(), Rights::READ).unwrap();
    assert_eq!(table.read(block).as_compact().map(|entry| entry.mask()), Some(0b1011));
    table.map(page(2), FrameNumber::new(99).unwrap(), Rights::READ).unwrap();
    assert_eq!((table.read(block).as_compact(), table.read(block).mask()), (None, 0b1111));
}

/// Nodes of unmapped pages are reused for new mappings while another page stays mapped.
fn reuses<T: PageTable>(mut table: T) {
    map(&mut table, 1 << 30);
    let mut bytes = Vec::new();
    for _ in 0..20 {
        (0..400).for_each(|island| map(&mut table, island * 0x1_2345));
        for island in 0..400 {
            table.unmap(page(island * 0x1_2345));
        }
        bytes.push(table.bytes());
    }
    assert_eq!(bytes[1], bytes[19], "{}: {bytes:?}", core::any::type_name::<T>());
}

#[test]
fn memory_of_unmapped_pages_is_reused() {
    reuses(Radix::<4>::new());
    reuses(Radix::<6>::new());
    reuses(Hashed::new());
    reuses(Clustered::<4>::new());
    reuses(Clustered::<16>::new());
    reuses(ClusteredLine::new());
    reuses(Guarded::new());
}
