//! Kyocho.
