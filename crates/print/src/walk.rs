//! The elements of a tensor that are shown, in order, without recursion.
#![forbid(unsafe_code)]

/// The most dimensions of a tensor.
pub const MOST_DIMS: usize = 64;

/// An index that runs over the shown elements: all of them, or the edges of each long dimension.
/// Lanes are one more dimension, the innermost.
pub struct Walk {
    extents: [i64; MOST_DIMS + 1],
    index: [i64; MOST_DIMS + 1],
    /// Dimensions of the tensor.
    ndim: usize,
    /// The same with that of the lanes.
    axes: usize,
    /// How many elements are shown at both ends of a long dimension, if not all.
    edge: Option<i64>,
}

/// What changed from one element to the next.
pub struct Step {
    /// The dimension that moved on; those behind it began again.
    pub axis: usize,
    /// Some of its elements were left out.
    pub gap: bool,
}

impl Walk {
    /// Starts at the first element; `None` if there are too many dimensions or one is negative.
    pub fn new(shape: &[i64], lanes: u16) -> Option<Walk> {
        let mut extents = [1; MOST_DIMS + 1];
        let several = lanes > 1;
        if shape.len() > MOST_DIMS || shape.iter().any(|&extent| extent < 0) {
            return None;
        }
        for (slot, &extent) in extents.iter_mut().zip(shape) {
            *slot = extent;
        }
        if several {
            *extents.get_mut(shape.len())? = lanes.into();
        }
        let axes = shape.len() + usize::from(several);
        Some(Walk { extents, index: [0; MOST_DIMS + 1], ndim: shape.len(), axes, edge: None })
    }

    /// Leaves out the middle of each dimension longer than two edges.
    pub fn only_edges(&mut self, edge: u32) {
        self.edge = Some(edge.max(1).into());
    }

    /// Dimensions, that of the lanes included.
    pub fn axes(&self) -> usize {
        self.axes
    }

    /// The index in the tensor.
    pub fn index(&self) -> &[i64] {
        self.index.get(..self.ndim).unwrap_or(&[])
    }

    /// The lane.
    pub fn lane(&self) -> u16 {
        self.index.get(self.ndim).map_or(0, |&lane| lane as u16)
    }

    /// Number of elements, and of those that are shown; saturated.
    pub fn counts(&self) -> (u64, u64) {
        let mut counts = (1u64, 1u64);
        for &extent in self.extents.iter().take(self.axes) {
            let shown = self.edge.map_or(extent, |edge| extent.min(2 * edge));
            counts.0 = counts.0.saturating_mul(extent as u64);
            counts.1 = counts.1.saturating_mul(shown as u64);
        }
        // A zero behind a saturated product still means that there is nothing.
        if self.extents.contains(&0) { (0, 0) } else { counts }
    }

    /// Moves to the next element; `None` after the last, which leaves the walk at its start.
    pub fn step(&mut self) -> Option<Step> {
        let both = self.index.iter_mut().zip(&self.extents).enumerate().take(self.axes);
        for (axis, (place, &extent)) in both.rev() {
            let next = *place + 1;
            let edge = self.edge.filter(|edge| next == *edge && 2 * edge < extent);
            let next = edge.map_or(next, |edge| extent - edge);
            if next < extent {
                *place = next;
                return Some(Step { axis, gap: edge.is_some() });
            }
            *place = 0;
        }
        None
    }
}
