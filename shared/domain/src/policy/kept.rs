//! The lists of the Engagement object in the form that expressions read.
//!
//! A list is converted when an expression reads it first, and grows with the engagement. An assertion so costs the same
//! after a thousand calls as after ten.

use super::PolicyError;
use super::value::{Bound, Left, MAX_BYTES_LOOKED_UP, MAX_LIST_LOOKED_UP, cel};
use cel::ExecutionError;
use cel::common::traits::{Adder, Container, Indexer, Iterable, Sizer};
use cel::common::types::{CelList, Type};
use cel::common::value::{BuiltinRef, CowVal, Val};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The lists that were read so far, by their key in `history`.
#[derive(Default)]
pub(crate) struct Kept(Mutex<HashMap<String, List>>);

#[derive(Default)]
struct List {
    items: Arc<CelList<'static>>,
    /// Bytes of each item.
    sizes: Vec<usize>,
    bytes: usize,
    /// The length of the longest list or map in an item.
    longest: usize,
    /// True if the last item is not the engagement's own yet.
    provisional: bool,
}

impl Kept {
    /// Returns the list under this key as it is now, with `next` behind it.
    pub(super) fn list(
        &self,
        key: &str,
        items: &[Value],
        next: Option<&Value>,
        left: &mut Left,
    ) -> Result<Bound, PolicyError> {
        left.list(items.len() + usize::from(next.is_some()))?;
        let mut lists = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let list = lists.entry(key.to_owned()).or_default();
        list.follow(items)?;
        if let Some(next) = next {
            list.push([next].into_iter())?;
            list.provisional = true;
        }
        left.saw(list.longest);
        left.take(list.bytes)?;
        Ok(Box::new(SharedList(Arc::clone(&list.items))))
    }

    /// Marks the last item of a list as changed.
    pub(crate) fn changed_last(&self, key: &str) {
        let mut lists = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(list) = lists.get_mut(key).filter(|list| !list.sizes.is_empty()) {
            list.provisional = true;
        }
    }
}

impl List {
    /// Becomes the list of these items; the items that it has already stay the same.
    fn follow(&mut self, items: &[Value]) -> Result<(), PolicyError> {
        if self.provisional {
            self.edit(|list| drop(list.pop()));
            self.bytes -= self.sizes.pop().unwrap_or_default();
            self.provisional = false;
        }
        if self.sizes.len() == items.len() {
            return Ok(());
        }
        self.push(items.iter().skip(self.sizes.len()))
    }

    fn push<'a>(&mut self, items: impl Iterator<Item = &'a Value>) -> Result<(), PolicyError> {
        let mut made = Vec::new();
        let mut failed = None;
        for item in items {
            let mut left = Left::new(MAX_BYTES_LOOKED_UP, MAX_LIST_LOOKED_UP);
            match cel(item, 1, &mut left) {
                Ok(value) => {
                    let size = MAX_BYTES_LOOKED_UP - left.bytes();
                    self.sizes.push(size);
                    self.bytes += size;
                    self.longest = self.longest.max(left.longest());
                    made.push(value);
                }
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
        }
        self.edit(|list| list.extend(made));
        failed.map_or(Ok(()), Err)
    }

    /// Changes the items in place, unless an expression that was given up still reads them.
    fn edit(&mut self, change: impl FnOnce(&mut Vec<Bound>)) {
        let mut items = std::mem::take(Arc::make_mut(&mut self.items)).into_inner();
        change(&mut items);
        self.items = Arc::new(CelList::from(items));
    }
}

impl Clone for Kept {
    /// Another engagement's lists are made anew.
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for Kept {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl std::fmt::Debug for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Kept")
    }
}

/// A list that is shared instead of copied.
#[derive(Clone, Debug)]
struct SharedList(Arc<CelList<'static>>);

impl Val for SharedList {
    fn get_type(&self) -> &Type {
        self.0.get_type()
    }

    fn cel_type() -> &'static Type {
        <CelList<'_> as Val>::cel_type()
    }

    fn as_adder<'b, 'v>(&'b self) -> Option<&'b (dyn Adder + 'v)>
    where
        Self: 'v,
    {
        self.0.as_adder()
    }

    fn as_container(&self) -> Option<&dyn Container> {
        self.0.as_container()
    }

    fn as_indexer<'b, 'v>(&'b self) -> Option<&'b (dyn Indexer + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn as_iterable<'b, 'v>(&'b self) -> Option<&'b (dyn Iterable + 'v)>
    where
        Self: 'v,
    {
        self.0.as_iterable()
    }

    fn as_sizer(&self) -> Option<&dyn Sizer> {
        self.0.as_sizer()
    }

    fn equals(&self, other: &dyn Val) -> bool {
        self.0.equals(other)
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v>
    where
        Self: 'v,
    {
        Box::new(self.clone())
    }

    fn as_builtin<'b, 'v>(&'b self) -> BuiltinRef<'b, 'v>
    where
        Self: 'v,
    {
        BuiltinRef::List(&self.0)
    }
}

impl Indexer for SharedList {
    fn get<'b, 'v>(&'b self, index: &dyn Val) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        self.0.get(index)
    }

    fn steal<'v>(self: Box<Self>, index: &dyn Val) -> Result<Box<dyn Val + 'v>, ExecutionError>
    where
        Self: 'v,
    {
        self.get(index).map(CowVal::into_owned)
    }
}
