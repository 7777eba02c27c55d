//! Work that a caller may walk away from, but that must not stop half-way.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

/// Runs a future in its caller's task; when the caller leaves before its end, a task of ours takes
/// it over. So the usual case pays no hand-over, and the unusual one loses nothing.
pub(crate) struct Finish<T: Send + 'static> {
    work: Option<Pin<Box<dyn Future<Output = T> + Send>>>,
    tasks: TaskTracker,
    runtime: Option<Handle>,
}

impl<T: Send + 'static> Finish<T> {
    pub(crate) fn new(tasks: &TaskTracker, work: impl Future<Output = T> + Send + 'static) -> Self {
        Self {
            work: Some(Box::pin(work)),
            tasks: tasks.clone(),
            runtime: Handle::try_current().ok(),
        }
    }
}

impl<T: Send + 'static> Future for Finish<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let Some(work) = self.work.as_mut() else { return Poll::Pending };
        let output = ready!(work.as_mut().poll(context));
        self.work = None;
        Poll::Ready(output)
    }
}

impl<T: Send + 'static> Drop for Finish<T> {
    fn drop(&mut self) {
        let Some(work) = self.work.take() else { return };
        // Without a runtime nothing can run any more: the lease is what is left.
        if let Some(runtime) = self.runtime.take() {
            drop(self.tasks.spawn_on(async move { drop(work.await) }, &runtime));
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn work_whose_caller_left_goes_on_to_its_end() {
        let tasks = TaskTracker::new();
        let (start, started) = oneshot::channel::<()>();
        let (end, ended) = oneshot::channel();
        let mut work = Finish::new(&tasks, async move {
            started.await.unwrap();
            end.send(()).unwrap();
        });
        assert!(futures_poll(&mut work).is_pending());
        drop(work);
        start.send(()).unwrap();
        ended.await.unwrap();
    }

    fn futures_poll<T: Send>(work: &mut Finish<T>) -> Poll<T> {
        Pin::new(work).poll(&mut Context::from_waker(std::task::Waker::noop()))
    }
}
