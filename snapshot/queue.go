package snapshot

import "sync"

// workQueue is a stack of directories that several workers take from; what one
// of them finds is scanned before what waited already, so the stack stays
// about as deep as the tree.
type workQueue struct {
	mu      sync.Mutex
	ready   *sync.Cond
	tasks   []*dirTask
	workers int
	busy    int
	err     error
}

func newWorkQueue(workers int) *workQueue {
	q := &workQueue{workers: workers}
	q.ready = sync.NewCond(&q.mu)
	return q
}

func (q *workQueue) push(t *dirTask) {
	q.mu.Lock()
	q.tasks = append(q.tasks, t)
	q.mu.Unlock()
	q.ready.Signal()
}

// run works until nothing is left or a step fails; dropped gets what is not worked on.
func (q *workQueue) run(step func(*dirTask) error, dropped func(*dirTask)) error {
	var wg sync.WaitGroup
	for range q.workers {
		wg.Go(func() {
			for t := q.take(); t != nil; t = q.take() {
				q.finish(step(t))
			}
		})
	}
	wg.Wait()
	for _, t := range q.tasks {
		dropped(t)
	}
	return q.err
}

func (q *workQueue) take() *dirTask {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.tasks) == 0 && q.busy > 0 && q.err == nil {
		q.ready.Wait()
	}
	if len(q.tasks) == 0 || q.err != nil {
		return nil
	}
	t := q.tasks[len(q.tasks)-1]
	q.tasks = q.tasks[:len(q.tasks)-1]
	q.busy++
	return t
}

func (q *workQueue) finish(err error) {
	q.mu.Lock()
	q.busy--
	if q.err == nil {
		q.err = err
	}
	q.mu.Unlock()
	q.ready.Broadcast()
}
