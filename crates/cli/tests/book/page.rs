//! A page of the book: its fenced blocks, with the marks above them.

use std::fs;
use std::path::Path;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Console,
    Scheme,
    /// A program or a file, to be checked as a mark says.
    Other,
    /// Nothing to execute.
    Text,
}

impl Kind {
    fn of(language: &str) -> Option<Self> {
        match language {
            "console" => Some(Self::Console),
            "scheme" => Some(Self::Scheme),
            "rust" | "c" | "toml" | "python" | "sh" => Some(Self::Other),
            "text" | "json" => Some(Self::Text),
            _ => None,
        }
    }

    pub(crate) fn is_executed(self) -> bool {
        matches!(self, Self::Console | Self::Scheme)
    }
}

#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) kind: Kind,
    /// The line of the opening fence, counted from 1.
    pub(crate) line: usize,
    pub(crate) text: String,
    pub(crate) from: Option<String>,
    pub(crate) file: Option<String>,
    pub(crate) condition: Option<String>,
    pub(crate) needs: Option<String>,
    pub(crate) varies: Vec<String>,
    pub(crate) reason: Option<String>,
}

impl Block {
    fn new(kind: Kind, line: usize) -> Self {
        Self {
            kind,
            line,
            text: String::new(),
            from: None,
            file: None,
            condition: None,
            needs: None,
            varies: Vec::new(),
            reason: None,
        }
    }

    /// Stores a mark. Returns whether it is one.
    fn mark(&mut self, mark: &str) -> bool {
        let Some((name, value)) = mark.split_once(": ") else { return false };
        let value = value.trim();
        match name {
            "from" => self.from = Some(value.to_owned()),
            "file" => self.file = Some(value.to_owned()),
            "wait until" => self.condition = Some(value.to_owned()),
            "needs" => self.needs = Some(value.to_owned()),
            "varies" => self.varies = value.split(", ").map(str::to_owned).collect(),
            "not run" => self.reason = Some(value.to_owned()),
            _ => return false,
        }
        true
    }

    /// The commands of a console block, each with its continuation lines.
    pub(crate) fn commands(&self) -> Vec<String> {
        let mut commands: Vec<String> = Vec::new();
        for line in self.text.lines() {
            if let Some(command) = line.strip_prefix("$ ") {
                commands.push(command.to_owned());
            } else if let (Some(more), Some(command)) = (continued(line), commands.last_mut()) {
                command.push('\n');
                command.push_str(more);
            }
        }
        commands
    }

    /// The expected output, commands included.
    pub(crate) fn expected(&self) -> Vec<String> {
        if self.file.is_some() {
            return Vec::new();
        }
        match self.kind {
            Kind::Scheme => self
                .text
                .lines()
                .filter_map(|line| line.split_once("; => "))
                .map(|(_, value)| value.to_owned())
                .collect(),
            _ => self.text.lines().map(str::to_owned).collect(),
        }
    }
}

/// The text of a continuation line.
pub(crate) fn continued(line: &str) -> Option<&str> {
    if line == ">" { Some("") } else { line.strip_prefix("> ") }
}

#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) blocks: Vec<Block>,
}

impl Page {
    pub(crate) fn parse(name: &str, text: &str) -> Result<Self, String> {
        let mut blocks = Vec::new();
        let mut open: Option<Block> = None;
        let mut marks: Vec<(usize, &str)> = Vec::new();
        for (index, line) in text.lines().enumerate() {
            if let Some(block) = open.take() {
                open = grown(block, line, &mut blocks);
            } else if let Some(language) = line.strip_prefix("```") {
                let kind = Kind::of(language)
                    .ok_or_else(|| format!("{name}:{}: `{language}`?", index + 1))?;
                open = Some(marked(name, Block::new(kind, index + 1), &marks)?);
                marks.clear();
            } else if let Some(mark) = comment(line) {
                marks.push((index + 1, mark));
            } else {
                marks.clear();
            }
        }
        match open {
            Some(block) => Err(format!("{name}:{}: the block has no end", block.line)),
            None => Ok(Self { blocks }),
        }
    }
}

/// Adds a line to the block. At the closing fence, moves the block to `blocks`.
fn grown(mut block: Block, line: &str, blocks: &mut Vec<Block>) -> Option<Block> {
    if line == "```" {
        blocks.push(block);
        return None;
    }
    block.text.push_str(line);
    block.text.push('\n');
    Some(block)
}

fn marked(name: &str, mut block: Block, marks: &[(usize, &str)]) -> Result<Block, String> {
    for (line, mark) in marks {
        if !block.mark(mark) {
            return Err(format!("{name}:{line}: `{mark}` is no mark"));
        }
    }
    Ok(block)
}

fn comment(line: &str) -> Option<&str> {
    line.strip_prefix("<!-- ")?.strip_suffix(" -->")
}

/// Replaces the text of `block` in its page by what was printed. A block with wildcards is not
/// changed.
pub(crate) fn write_anew(path: &Path, block: &Block, printed: &[String]) {
    let wild = block.text.contains("[..]") || block.text.lines().any(|line| line == "...");
    if block.kind != Kind::Console || wild {
        return;
    }
    let text = fs::read_to_string(path).expect("the page can be read");
    let new = format!("```console\n{}\n```\n", printed.join("\n"));
    let anew = text.replacen(&format!("```console\n{}```\n", block.text), &new, 1);
    fs::write(path, anew).expect("the page can be written");
}
