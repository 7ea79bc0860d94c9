//! The elements of a view without strides: the list of their offsets.

use dlpack_rs::view::{ALL_AXES, Step};

/// Elements in row-major order, each as the bit at which it starts.
#[derive(Clone, Debug)]
pub struct Model {
    pub shape: Vec<i64>,
    pub bits: Vec<i128>,
    pub item: u32,
}

/// All index tuples of a shape, row-major.
pub fn tuples(shape: &[i64]) -> Vec<Vec<i64>> {
    let mut all = vec![vec![]];
    for &extent in shape {
        let longer =
            |tuple: Vec<i64>| (0..extent).map(move |i| tuple.iter().copied().chain([i]).collect());
        all = all.into_iter().flat_map(longer).collect();
    }
    all
}

fn axis_of(axis: i32, ndim: usize) -> Option<usize> {
    let axis = if axis < 0 { axis as i64 + ndim as i64 } else { axis as i64 };
    (0..ndim as i64).contains(&axis).then_some(axis as usize)
}

/// The indices of a Python slice: `range(*slice(start, stop, step).indices(n))`.
fn range(n: i64, start: i64, stop: i64, step: i64) -> Vec<i64> {
    let fix = |index: i64| {
        let index = if index < 0 { index as i128 + n as i128 } else { index as i128 };
        if step > 0 { index.clamp(0, n as i128) } else { index.clamp(-1, n as i128 - 1) }
    };
    let (mut at, stop, mut all) = (fix(start), fix(stop), vec![]);
    while if step > 0 { at < stop } else { at > stop } {
        all.push(at as i64);
        at += step as i128;
    }
    all
}

impl Model {
    pub fn strided(shape: &[i64], strides: &[i64], item: u32, first: i128) -> Model {
        let place = |tuple: &Vec<i64>| {
            let way = tuple.iter().zip(strides).map(|(i, s)| *i as i128 * *s as i128);
            first + way.sum::<i128>() * item as i128
        };
        Model { shape: shape.to_vec(), bits: tuples(shape).iter().map(place).collect(), item }
    }

    fn at(&self, tuple: &[i64]) -> i128 {
        let flat = tuple.iter().zip(&self.shape).fold(0, |flat, (i, n)| flat * n + i);
        self.bits[flat as usize]
    }

    /// A new shape whose elements are old ones.
    fn gather(&self, shape: Vec<i64>, from: impl Fn(&[i64]) -> Vec<i64>) -> Option<Model> {
        let bits = tuples(&shape).iter().map(|tuple| self.at(&from(tuple))).collect();
        Some(Model { shape, bits, item: self.item })
    }

    fn pick(&self, axis: usize, indices: &[i64]) -> Option<Model> {
        let mut shape = self.shape.clone();
        shape[axis] = indices.len() as i64;
        self.gather(shape, |tuple| {
            let mut tuple = tuple.to_vec();
            tuple[axis] = indices[tuple[axis] as usize];
            tuple
        })
    }

    fn reshaped(&self, shape: &[i64]) -> Option<Model> {
        let model = Model { shape: shape.to_vec(), ..self.clone() };
        model.affine().then_some(model)
    }

    /// Whether strides can express it.
    fn affine(&self) -> bool {
        if self.bits.is_empty() {
            return true;
        }
        let steps: Vec<i128> = (0..self.shape.len())
            .map(|dim| {
                let mut tuple = vec![0; self.shape.len()];
                tuple[dim] = (self.shape[dim] - 1).min(1);
                self.at(&tuple) - self.bits[0]
            })
            .collect();
        tuples(&self.shape).iter().all(|tuple| {
            let way: i128 = tuple.iter().zip(&steps).map(|(i, s)| *i as i128 * s).sum();
            self.at(tuple) == self.bits[0] + way
        })
    }

    fn bitcast(&self, to: u32) -> Option<Model> {
        if to == self.item {
            return Some(self.clone());
        }
        let (outer, last) = (self.shape.split_last()?.1, *self.shape.last()?);
        let item = self.item as i128;
        let dense = self
            .bits
            .chunks(last.max(1) as usize)
            .all(|row| row.windows(2).all(|pair| pair[1] - pair[0] == item));
        let total = last as i128 * item;
        // The last byte may have other bits, too.
        if !dense || to != 8 && total % to as i128 != 0 {
            return None;
        }
        let count = (total + to as i128 - 1) / to as i128;
        let rows = self.bits.chunks(last.max(1) as usize);
        let bits = rows.flat_map(|row| (0..count).map(move |i| row[0] + i * to as i128)).collect();
        let mut shape = outer.to_vec();
        shape.push(count as i64);
        let model = Model { shape, bits, item: to };
        // Strides count elements.
        let whole = model.bits.iter().all(|bit| (bit - model.bits[0]) % to as i128 == 0);
        whole.then_some(model)
    }

    /// The model of the view after a step; `None` when the step has to fail.
    pub fn apply(
        &self,
        step: &Step,
        room: (i128, i128),
        slot: impl Fn(&Step) -> u32,
    ) -> Option<Model> {
        let ndim = self.shape.len();
        let with = |axis: i32| axis_of(axis, ndim);
        match *step {
            Step::Slice { axis, start, stop, step } => {
                let dim = with(axis)?;
                if step == 0 {
                    return None;
                }
                self.pick(dim, &range(self.shape[dim], start, stop, step))
            }
            Step::Select { axis, index } => {
                let dim = with(axis)?;
                let n = self.shape[dim];
                let index = if index < 0 { index + n } else { index };
                (0..n).contains(&index).then_some(())?;
                let picked = self.pick(dim, &[index])?;
                let mut shape = picked.shape.clone();
                shape.remove(dim);
                Some(Model { shape, ..picked })
            }
            Step::Narrow { axis, start, count } => {
                let dim = with(axis)?;
                let n = self.shape[dim];
                let start = if start < 0 { start + n } else { start };
                (start >= 0 && count >= 0 && start.saturating_add(count) <= n).then_some(())?;
                self.pick(dim, &(start..start + count).collect::<Vec<_>>())
            }
            Step::Flip { axis: ALL_AXES } => self.gather(self.shape.clone(), |tuple| {
                tuple.iter().zip(&self.shape).map(|(i, n)| n - 1 - i).collect()
            }),
            Step::Flip { axis } => {
                let dim = with(axis)?;
                self.pick(dim, &(0..self.shape[dim]).rev().collect::<Vec<_>>())
            }
            Step::Unfold { axis, window, step } => {
                let dim = with(axis)?;
                let n = self.shape[dim];
                (window >= 1 && window <= n && step >= 1).then_some(())?;
                let mut shape = self.shape.clone();
                shape[dim] =
                    (0..n).step_by(step as usize).filter(|at| at + window <= n).count() as i64;
                shape.push(window);
                self.gather(shape, |tuple| {
                    let mut from = tuple[..ndim].to_vec();
                    from[dim] = from[dim] * step + tuple[ndim];
                    from
                })
            }
            Step::Diagonal { axis_a, axis_b, offset } => {
                let (a, b) = (with(axis_a)?, with(axis_b)?);
                (a != b).then_some(())?;
                let kept: Vec<usize> = (0..ndim).filter(|dim| *dim != a && *dim != b).collect();
                let cell = |k: i64| (k - offset.min(0), k + offset.max(0));
                let inside = |k: &i64| cell(*k).0 < self.shape[a] && cell(*k).1 < self.shape[b];
                let mut shape: Vec<i64> = kept.iter().map(|dim| self.shape[*dim]).collect();
                shape.push((0..).take_while(inside).count() as i64);
                self.gather(shape, |tuple| {
                    let mut from = vec![0; ndim];
                    kept.iter().zip(tuple).for_each(|(dim, index)| from[*dim] = *index);
                    (from[a], from[b]) = cell(tuple[ndim - 2]);
                    from
                })
            }
            Step::Permute { axes } => {
                let dims: Option<Vec<usize>> = axes.iter().map(|axis| with(*axis as i32)).collect();
                let dims = dims.filter(|dims| dims.len() == ndim)?;
                (0..ndim).all(|dim| dims.contains(&dim)).then_some(())?;
                let shape = dims.iter().map(|dim| self.shape[*dim]).collect();
                self.gather(shape, |tuple| {
                    let mut from = vec![0; ndim];
                    dims.iter().zip(tuple).for_each(|(dim, index)| from[*dim] = *index);
                    from
                })
            }
            Step::Transpose { axis_a, axis_b } => {
                let (a, b) = (with(axis_a)?, with(axis_b)?);
                let mut shape = self.shape.clone();
                shape.swap(a, b);
                self.gather(shape, |tuple| {
                    let mut from = tuple.to_vec();
                    from.swap(a, b);
                    from
                })
            }
            Step::Squeeze { axis: ALL_AXES } => {
                let shape = self.shape.iter().copied().filter(|n| *n != 1).collect();
                Some(Model { shape, ..self.clone() })
            }
            Step::Squeeze { axis } => {
                let dim = with(axis).filter(|dim| self.shape[*dim] == 1)?;
                let mut shape = self.shape.clone();
                shape.remove(dim);
                Some(Model { shape, ..self.clone() })
            }
            Step::Unsqueeze { axis } => {
                let dim = axis_of(axis, ndim + 1)?;
                let mut shape = self.shape.clone();
                shape.insert(dim, 1);
                Some(Model { shape, ..self.clone() })
            }
            Step::Reshape { shape } => self.reshaped(&resolve(shape, self.bits.len() as i64)?),
            Step::Expand { shape } => self.expand(shape),
            Step::AsStrided { shape, strides, offset } => {
                let first =
                    self.bits.first().map_or(0, |bit| bit + offset as i128 * self.item as i128);
                let model = Model::strided(shape, strides, self.item, first);
                let (low, high) = self.span().map_or((0, 0), |span| span);
                let (low, high) = (low.max(room.0), high.min(room.1));
                let fits = model.span().is_none_or(|(from, to)| from >= low && to <= high);
                (shape.iter().all(|n| *n >= 0) && fits).then_some(model)
            }
            Step::Bitcast { .. } => self.bitcast(slot(step)),
            Step::Lanes { lanes: 1 } => {
                let mut longer = self.clone();
                longer.shape.push(1);
                longer.bitcast(slot(step))
            }
            Step::Lanes { lanes } => {
                let last = *self.shape.last()?;
                let mut packed = self.bitcast(slot(step)).filter(|_| last == lanes as i64)?;
                packed.shape.pop();
                Some(packed)
            }
            Step::ReadOnly | Step::Normalize { what: 0..=3 } => Some(self.clone()),
            Step::Normalize { .. } => Some(self.clone()), // compared without its shape
        }
    }

    fn expand(&self, shape: &[i64]) -> Option<Model> {
        let added = shape.len().checked_sub(self.shape.len())?;
        let own = |dim: usize| dim.checked_sub(added).map(|own| self.shape[own]);
        let wanted = |(dim, n): (usize, &i64)| match (own(dim), *n) {
            (Some(own), -1) => Some(own),
            (_, n) if n < 0 => None,
            (Some(own), n) if own != n && own != 1 => None,
            (_, n) => Some(n),
        };
        let shape: Option<Vec<i64>> = shape.iter().enumerate().map(wanted).collect();
        self.gather(shape?, |tuple| {
            tuple[added..]
                .iter()
                .zip(&self.shape)
                .map(|(i, n)| if *n == 1 { 0 } else { *i })
                .collect()
        })
    }

    /// First bit used and one past the last.
    pub fn span(&self) -> Option<(i128, i128)> {
        let (low, high) = (self.bits.iter().min()?, self.bits.iter().max()?);
        Some((*low, high + self.item as i128))
    }

    /// Whether two elements share a bit.
    pub fn shares(&self) -> bool {
        let mut sorted = self.bits.clone();
        sorted.sort_unstable();
        sorted.windows(2).any(|pair| pair[1] - pair[0] < self.item as i128)
    }
}

fn resolve(shape: &[i64], elements: i64) -> Option<Vec<i64>> {
    let known: i64 = shape.iter().filter(|n| **n != -1).product();
    let open = shape.iter().filter(|n| **n == -1).count();
    (shape.iter().all(|n| *n >= -1) && open <= 1).then_some(())?;
    if open == 0 {
        return (known == elements).then(|| shape.to_vec());
    }
    (known != 0 && elements % known == 0).then_some(())?;
    Some(shape.iter().map(|n| if *n == -1 { elements / known } else { *n }).collect())
}
