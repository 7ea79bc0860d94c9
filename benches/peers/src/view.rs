/// What is copied: a view of elements of `size` bytes, with strides in elements.
pub struct View<'a> {
    pub data: *const u8,
    pub shape: &'a [i64],
    pub strides: &'a [i64],
    pub size: usize,
}

impl View<'_> {
    /// How many elements.
    pub fn count(&self) -> usize {
        self.shape.iter().product::<i64>() as usize
    }

    /// The shape as indices.
    pub fn dims(&self) -> Vec<usize> {
        self.shape.iter().map(|&n| n as usize).collect()
    }

    /// Steps between elements of a compact array of this shape.
    pub fn compact(&self) -> Vec<isize> {
        let from = |i: usize| self.shape[i + 1..].iter().product::<i64>() as isize;
        (0..self.shape.len()).map(from).collect()
    }

    /// Where the view's lowest element is, in elements from `data`, and how many there are from it
    /// to the highest.
    pub fn span(&self) -> (isize, usize) {
        let ends = self.shape.iter().zip(self.strides).map(|(n, step)| (n - 1) * step);
        let (low, high) =
            ends.fold((0, 0), |(low, high), end| (low + end.min(0), high + end.max(0)));
        (low as isize, (high - low + 1) as usize)
    }
}

/// Runs a function for the type of elements of that size; false for other sizes.
///
/// Floats where a library multiplies or has kernels for them; no type asks for more than 8-byte
/// alignment.
macro_rules! of_size {
    ($size:expr, $function:ident($($argument:expr),*)) => {
        match $size {
            1 => $function::<u8>($($argument),*),
            2 => $function::<u16>($($argument),*),
            3 => $function::<[u8; 3]>($($argument),*),
            4 => $function::<f32>($($argument),*),
            8 => $function::<f64>($($argument),*),
            12 => $function::<[u32; 3]>($($argument),*),
            16 => $function::<[f64; 2]>($($argument),*),
            _ => false,
        }
    };
}
pub(crate) use of_size;
