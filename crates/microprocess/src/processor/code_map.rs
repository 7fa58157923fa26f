//! Finds the mapped code of this process's files in the text of `/proc/self/maps`.

use core::ops::Range;

/// The executable mappings of files in that text: the addresses, and the file's path.
pub(crate) fn code_in(maps: &str) -> impl Iterator<Item = (Range<usize>, &str)> {
    maps.lines().filter_map(code_of)
}

/// The addresses and the path in a line, if it describes an executable mapping of a file.
fn code_of(line: &str) -> Option<(Range<usize>, &str)> {
    let path = &line[line.find('/')?..];
    let mut fields = line.split(' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let is_code = fields.next()?.contains('x');
    let address = |text| usize::from_str_radix(text, 16).ok();
    let addresses = address(start)?..address(end)?;
    is_code.then_some((addresses, path))
}

#[cfg(test)]
mod tests {
    use super::code_in;

    #[test]
    fn code_of_files_is_found() {
        const MAPS: &str = "\
7f00-8000 r-xp 00001000 00:01 1    /usr/bin/program
8000-9000 r--p 00000000 00:01 2    /usr/lib/libc.so.6
9000-a000 r-xp 00001000 00:01 2    /usr/lib/libc.so.6 (deleted)
c000-d000 r-xp 00000000 00:00 0    [vdso]
d000-e000 rwxp 00000000 00:00 0 \n";
        let found: Vec<_> = code_in(MAPS).collect();
        let expected = [
            (0x7f00..0x8000, "/usr/bin/program"),
            (0x9000..0xa000, "/usr/lib/libc.so.6 (deleted)"),
        ];
        assert_eq!(found, expected);
    }
}
