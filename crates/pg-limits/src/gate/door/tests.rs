//! What a door does at each stage, without a database.

use super::*;
use crate::enter::Entry;

const CAP: InFlight = InFlight::new("requests", 8);
const WINDOW: Window = Window::new("w", 100, MINUTE);
const MINUTE: Duration = Duration::from_mins(1);
const CONNECTION: u64 = 7;

type Answered = oneshot::Receiver<Result<Entry, LimitsError>>;

fn key() -> DoorKey {
    DoorKey::of_cap(CAP.name(), "t1")
}

fn request(cap: InFlight, ends_in: Duration) -> Request {
    Request {
        in_flight: Some(cap),
        windows: vec![(WINDOW, "t1".to_owned())],
        ends_at: BootInstant::now() + ends_in,
    }
}

/// Whoever waits for the answer must be kept: a door asks for nobody who has left.
fn arrive(door: &mut Door, request: Request) -> Answered {
    let (answer, answered) = oneshot::channel();
    door.waiting.push_back(Waiter { request, answer, has_looked: false });
    answered
}

fn told(told: Option<Told>, admitted: i32) -> Outcome {
    Outcome::Told { told, admitted, again: Vec::new(), is_tight: false }
}

/// A door that let in three, two of whom have left: the database knows of three.
fn door() -> Door {
    let mut door = Door::new(BootInstant::now());
    let _waiting = [(); 3].map(|()| arrive(&mut door, request(CAP, MINUTE)));
    let batch = door.next_batch(&key(), 1, CONNECTION).unwrap();
    assert!(batch.tells);
    door.settle(told(batch.told(3), 3));
    assert!(door.is_told());
    door.count_out();
    door.count_out();
    door
}

/// Whether the next call tells the database of the door.
fn tells(door: &mut Door, requests: impl IntoIterator<Item = Request>, connection: u64) -> bool {
    let _waiting: Vec<_> = requests.into_iter().map(|request| arrive(door, request)).collect();
    door.next_batch(&key(), 2, connection).unwrap().tells
}

#[test]
fn whoever_takes_a_departed_ones_place_need_not_be_told() {
    let two = [request(CAP, MINUTE), request(CAP, MINUTE)];
    let mut door = door();
    assert!(!tells(&mut door, two, CONNECTION));
    door.settle(told(None, 2));
    assert!(door.is_told(), "all three places are taken again");
    assert_eq!(door.wants_a_call(), None);
    assert!(tells(&mut door, [request(CAP, MINUTE)], CONNECTION), "a fourth has none to take");
}

#[test]
fn three_cannot_take_two_places() {
    let three = [(); 3].map(|()| request(CAP, MINUTE));
    assert!(tells(&mut door(), three, CONNECTION));
}

#[test]
fn what_an_earlier_connection_told_may_be_lost() {
    assert!(tells(&mut door(), [request(CAP, MINUTE)], CONNECTION + 1));
}

#[test]
fn another_cap_is_for_the_database_to_decide() {
    let lower = InFlight::new(CAP.name(), 2);
    assert!(tells(&mut door(), [request(lower, MINUTE)], CONNECTION));
}

#[test]
fn in_shadow_mode_the_database_says_what_would_have_been_refused() {
    let shadow = CAP.shadow(true);
    let mut door = door();
    door.told = door.told.map(|told| Told { cap: Some(shadow), ..told });
    assert!(tells(&mut door, [request(shadow, MINUTE)], CONNECTION));
}

#[test]
fn the_database_is_told_of_a_later_end() {
    assert!(!tells(&mut door(), [request(CAP, MINUTE)], CONNECTION), "within the time to spare");
    assert!(tells(&mut door(), [request(CAP, MINUTE + 2 * SPARE)], CONNECTION));
}

#[test]
fn without_a_window_the_call_tells_since_it_has_nothing_else_to_ask() {
    let alone = Request { windows: Vec::new(), ..request(CAP, MINUTE) };
    assert!(tells(&mut door(), [alone], CONNECTION));
}

#[test]
fn places_are_taken_until_the_departures_are_due_to_be_told() {
    let mut door = door();
    door.tells_at = Some(Instant::now());
    assert!(tells(&mut door, [request(CAP, MINUTE)], CONNECTION));
}

#[test]
fn taking_one_of_two_places_puts_off_nothing() {
    let mut door = door();
    let due = door.wants_a_call().unwrap();
    assert!(!tells(&mut door, [request(CAP, MINUTE)], CONNECTION));
    door.settle(told(None, 1));
    assert_eq!(door.wants_a_call(), Some(due));
}

#[test]
fn after_a_refusal_the_database_decides() {
    let mut door = door();
    door.tight_until = Some(Instant::now() + TIGHT);
    assert!(tells(&mut door, [request(CAP, MINUTE)], CONNECTION));
}

#[test]
fn a_call_that_failed_leaves_what_was_told_unknown_only_if_it_told() {
    let mut kept = door();
    let _waiting = arrive(&mut kept, request(CAP, MINUTE));
    let batch = kept.next_batch(&key(), 2, CONNECTION).unwrap();
    kept.settle(Outcome::failed(&batch));
    assert_eq!(kept.told.map(|told| told.held), Some(3));

    let mut unknown = door();
    let _waiting = arrive(&mut unknown, request(CAP, MINUTE));
    let batch = unknown.next_batch(&key(), 2, CONNECTION + 1).unwrap();
    unknown.settle(Outcome::failed(&batch));
    assert_eq!(unknown.told, None);
    let first = unknown.wants_a_call().unwrap();
    unknown.settle(Outcome::Unknown);
    assert!(unknown.wants_a_call().unwrap() > first, "and is told anew, later each time");
}

#[test]
fn whoever_looks_a_second_time_comes_first_and_rests_before() {
    let mut door = door();
    let _waiting = [(); 2].map(|()| arrive(&mut door, request(CAP, MINUTE)));
    let mut batch = door.next_batch(&key(), 2, CONNECTION + 1).unwrap();
    let _behind = arrive(&mut door, request(CAP, 2 * MINUTE));
    let again = batch.waiters.split_off(1);
    let told = batch.told(1);
    door.settle(Outcome::Told { told, admitted: 1, again, is_tight: true });
    assert!(matches!(door.stage, Stage::Resting { .. }));
    assert!(door.waiting.front().is_some_and(|waiter| waiter.has_looked));
    assert_eq!(door.waiting.len(), 2);
    assert!(door.is_tight(Instant::now()));
}

#[test]
fn a_door_that_told_all_is_forgotten() {
    let mut door = door();
    door.count_out();
    assert!(!door.is_idle());
    let batch = door.next_batch(&key(), 2, CONNECTION).unwrap();
    assert!(batch.tells && batch.waiters.is_empty());
    door.settle(told(batch.told(0), 0));
    assert!(door.is_idle());
}
