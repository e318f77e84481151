//! A grid of characters in three layers: bars and rules, lines of dots finer than a character, marks.

use super::row::{Ink, Row};

/// The dots of a Braille character, by row and column.
const DOTS: [[u8; 2]; 4] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];
const BRAILLE: u32 = 0x2800;

/// One character of the grid.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    base: Option<(char, Ink)>,
    dots: u8,
    dots_ink: Ink,
    mark: Option<(char, Ink)>,
}

/// The place where a panel's data is drawn. Row 0 is the highest.
#[derive(Clone, Debug)]
pub(super) struct Canvas {
    pub(super) width: usize,
    pub(super) height: usize,
    cells: Vec<Cell>,
}

impl Canvas {
    pub(super) fn new(width: usize, height: usize) -> Self {
        Self { width, height, cells: vec![Cell::default(); width * height] }
    }

    /// Puts a character below everything.
    pub(super) fn base(&mut self, column: usize, row: usize, glyph: char, ink: Ink) {
        if let Some(cell) = self.cell(column, row) {
            cell.base = Some((glyph, ink));
        }
    }

    /// Puts a character above everything.
    pub(super) fn mark(&mut self, column: usize, row: usize, glyph: char, ink: Ink) {
        if let Some(cell) = self.cell(column, row) {
            cell.mark = Some((glyph, ink));
        }
    }

    /// Joins two dots; a character is two dots wide and four high.
    pub(super) fn line(&mut self, from: (usize, usize), to: (usize, usize), ink: Ink) {
        let steps = from.0.abs_diff(to.0).max(from.1.abs_diff(to.1)).max(1);
        let between = |from: usize, to: usize, step: usize| {
            let half = steps / 2;
            if to >= from {
                from + ((to - from) * step + half) / steps
            } else {
                from - ((from - to) * step + half) / steps
            }
        };
        for step in 0..=steps {
            self.dot(between(from.0, to.0, step), between(from.1, to.1, step), ink);
        }
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = Row> + '_ {
        self.cells.chunks(self.width).map(|cells| {
            let mut row = Row::default();
            for cell in cells {
                let (glyph, ink) = cell.shown();
                row.push(ink, glyph.encode_utf8(&mut [0; 4]));
            }
            row
        })
    }

    fn dot(&mut self, x: usize, y: usize, ink: Ink) {
        if let Some(cell) = self.cell(x / 2, y / 4) {
            cell.dots |= DOTS[y % 4][x % 2];
            cell.dots_ink = ink;
        }
    }

    fn cell(&mut self, column: usize, row: usize) -> Option<&mut Cell> {
        let is_inside = column < self.width && row < self.height;
        is_inside.then(|| &mut self.cells[row * self.width + column])
    }
}

impl Cell {
    fn shown(&self) -> (char, Ink) {
        let dots = char::from_u32(BRAILLE + u32::from(self.dots)).filter(|_| self.dots != 0);
        let line = dots.map(|dots| (dots, self.dots_ink));
        self.mark.or(line).or(self.base).unwrap_or((' ', Ink::Plain))
    }
}
