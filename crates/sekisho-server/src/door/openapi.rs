//! The description of the HTTP doors, for people and their tools.

/// The `OpenAPI` 3.1 document that `GET /v1/openapi.json` answers with.
pub const OPENAPI: &str = include_str!("openapi.json");
