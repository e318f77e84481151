//! Answers as a policy file chooses them, and the layer in the stacks that it is made for.

mod answers;
mod cases;
mod counting;
mod grpc;
mod identity;
mod moving_up;
mod nested;
mod observed;
mod outage;
mod outcomes;
mod queue;
mod stacks;
mod support;
