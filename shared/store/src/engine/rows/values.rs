//! The values of columns: one implementation for each type, in both directions.

use super::super::columns::{Column, ColumnKind};
use super::super::statement::as_json;
use super::{Batch, Fields};
use crate::{JobKind, PoolStrategy, StoreError, WorkerKind, WorkerState};
use serde_json::{Map, Value};
use std::borrow::Cow;
use turnstone_domain::agent::delegation::{DelegationMode, DelegationState};
use turnstone_domain::agent::guardrails::Side;
use turnstone_domain::cron::{Missed, Outcome, Overlap};
use turnstone_domain::review::{ReviewKind, ReviewPlan, ReviewState, Vote};
use turnstone_domain::schema::Mode;
use turnstone_domain::terms::OnLimit;
use turnstone_domain::tool_call::{Handled, ToolCallState, ToolOutcome};
use turnstone_domain::turn_write::Position;
use turnstone_domain::webhook::{DeliveryState, SigningSecret, WebhookFilter};
use turnstone_domain::workflow::{StepRole, StepState, WorkflowKind, WorkflowState};
use turnstone_domain::{
    CallId, EngagementId, JobId, JobState, Phase, RawJson, RawObject, ReviewId, Timestamp,
};

/// A value that can be read from a column, or an `Option` of one.
pub(crate) trait FromField<'r>: Sized {
    /// Reads it.
    ///
    /// # Errors
    /// Says why the value is none of this type.
    fn from_field<R: Fields>(row: &'r R, column: &str) -> Result<Self, String>;
}

/// A value that can be written to a column, or an `Option` of one.
pub(crate) trait Put: Sized {
    /// The kind of its column.
    const KIND: ColumnKind;

    /// Appends it.
    fn put(self, column: &mut Column) -> Result<(), StoreError>;

    /// Appends a copy.
    fn put_copy(&self, column: &mut Column) -> Result<(), StoreError>;
}

/// One value that is not NULL.
pub(crate) trait Single<'r>: Sized {
    fn read<R: Fields>(row: &'r R, column: &str) -> Result<Option<Self>, String>;
}

impl<'r, T: Single<'r>> FromField<'r> for T {
    fn from_field<R: Fields>(row: &'r R, column: &str) -> Result<Self, String> {
        T::read(row, column)?.ok_or_else(|| "it is NULL".to_owned())
    }
}

impl<'r, T: Single<'r>> FromField<'r> for Option<T> {
    fn from_field<R: Fields>(row: &'r R, column: &str) -> Result<Self, String> {
        T::read(row, column)
    }
}

impl<'r> Single<'r> for &'r str {
    fn read<R: Fields>(row: &'r R, column: &str) -> Result<Option<Self>, String> {
        row.text(column)
    }
}

/// Types that are numbers in the database: how one is made of a number, and the other way round.
macro_rules! numbers {
    ($($type:ty: |$number:ident| $read:expr, |$value:ident| $written:expr;)+) => {
        $(impl Single<'_> for $type {
            fn read<R: Fields>(row: &R, column: &str) -> Result<Option<Self>, String> {
                row.int(column)?.map(|$number| $read).transpose()
            }
        }

        impl Put for $type {
            const KIND: ColumnKind = ColumnKind::Ints;

            fn put(self, column: &mut Column) -> Result<(), StoreError> {
                Put::put_copy(&self, column)
            }

            fn put_copy(&self, column: &mut Column) -> Result<(), StoreError> {
                let $value = *self;
                column.int(Some($written));
                Ok(())
            }
        }

        impl Put for Option<$type> {
            const KIND: ColumnKind = ColumnKind::Ints;

            fn put(self, column: &mut Column) -> Result<(), StoreError> {
                Put::put_copy(&self, column)
            }

            fn put_copy(&self, column: &mut Column) -> Result<(), StoreError> {
                column.int(self.map(|$value| $written));
                Ok(())
            }
        })+
    };
}

numbers! {
    i64: |number| Ok(number), |value| value;
    bool: |number| Ok(number != 0), |value| i64::from(value);
    Timestamp: |number| Ok(Timestamp(number)), |value| value.0;
    usize: |number| usize::try_from(number).map_err(|e| e.to_string()), |value| i64::try_from(value).unwrap_or(i64::MAX);
    Phase: |number| Phase::from_index(number).ok_or_else(|| format!("{number} is unknown")),
           |value| i64::try_from(value.index()).unwrap_or(i64::MAX);
}

/// Types that are texts in the database: how one is made of a text, moved into a text, and copied into one.
macro_rules! texts {
    ($($type:ty: |$text:ident| $read:expr, |$value:ident| $moved:expr, $copied:expr;)+) => {
        $(impl Single<'_> for $type {
            fn read<R: Fields>(row: &R, column: &str) -> Result<Option<Self>, String> {
                let read = |$text: &str| -> Result<$type, String> { $read };
                row.text(column)?.map(read).transpose()
            }
        }

        impl Put for $type {
            const KIND: ColumnKind = ColumnKind::Texts;

            fn put(self, column: &mut Column) -> Result<(), StoreError> {
                let $value = self;
                column.text(Some($moved));
                Ok(())
            }

            fn put_copy(&self, column: &mut Column) -> Result<(), StoreError> {
                let $value = self;
                column.text(Some($copied));
                Ok(())
            }
        }

        impl Put for Option<$type> {
            const KIND: ColumnKind = ColumnKind::Texts;

            fn put(self, column: &mut Column) -> Result<(), StoreError> {
                match self {
                    Some(value) => Put::put(value, column)?,
                    None => column.text(None),
                }
                Ok(())
            }

            fn put_copy(&self, column: &mut Column) -> Result<(), StoreError> {
                match self {
                    Some(value) => Put::put_copy(value, column)?,
                    None => column.text(None),
                }
                Ok(())
            }
        })+
    };
}

/// Types of which a text is a part.
macro_rules! wrapped {
    ($($type:ident)+) => {
        texts! {
            $($type: |text| Ok($type(text.to_owned())), |value| Cow::Owned(value.0), Cow::Owned(value.0.clone());)+
        }
    };
}

/// Enums that have a word for each variant.
macro_rules! words {
    ($($type:ident)+) => {
        texts! {
            $($type: |text| $type::parse(text).ok_or_else(|| format!("`{text}` is unknown")),
                     |value| Cow::Borrowed(value.as_str()), Cow::Borrowed(value.as_str());)+
        }
    };
}

/// Types that are JSON in the database.
macro_rules! documents {
    ($($type:ty;)+) => {
        texts! {
            $($type: |text| serde_json::from_str(text).map_err(|e| e.to_string()),
                     |value| Cow::Owned(as_json(&value)?), Cow::Owned(as_json(value)?);)+
        }
    };
}

texts! {
    Cow<'static, str>: |text| Ok(Cow::Owned(text.to_owned())), |value| value, value.clone();
    String: |text| Ok(text.to_owned()), |value| Cow::Owned(value), Cow::Owned(value.clone());
}
wrapped! { JobId CallId ReviewId EngagementId SigningSecret }
words! {
    DelegationMode DelegationState DeliveryState JobKind JobState Missed Mode OnLimit Outcome Overlap PoolStrategy ReviewKind
    ReviewState Side StepRole StepState ToolCallState WorkerKind WorkerState WorkflowKind WorkflowState
}
documents! {
    Handled; Map<String, Value>; Position; RawJson; RawObject; ReviewPlan; ToolOutcome; Value; Vec<String>; Vec<Vote>;
    Vec<i64>; WebhookFilter;
}

/// Lists of single values are rows of one column.
macro_rules! single {
    ($($type:ty)+) => {
        $(impl Batch for $type {
            const COLUMNS: &'static [(&'static str, Option<ColumnKind>)] = &[("", Some(<$type as Put>::KIND))];

            fn put(self, columns: &mut [Column], _: &[Option<usize>]) -> Result<(), StoreError> {
                Put::put(self, &mut columns[0])
            }

            fn put_copy(&self, columns: &mut [Column], _: &[Option<usize>]) -> Result<(), StoreError> {
                Put::put_copy(self, &mut columns[0])
            }
        })+
    };
}

single! { i64 String JobId }
