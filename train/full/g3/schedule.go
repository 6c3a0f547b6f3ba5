package g3

import "container/heap"

// schedule runs tasks in the order of their urgency, each when those it comes after
// are done. Some of these come from outside: rows that arrive. It knows no clock and
// no wire; its caller does.
type schedule struct {
	tasks []task
	ready urgent
	left  int // tasks and arrivals not done
}

type task struct {
	urgency int64 // the smallest first
	run     func()
	waits   int   // for how many others
	then    []int // who waits for it
	done    bool
}

// add makes a task that comes after others and returns its number.
func (s *schedule) add(urgency int64, run func(), after ...[]int) int {
	id := len(s.tasks)
	t := task{urgency: urgency, run: run}
	for _, list := range after {
		for _, a := range list {
			s.tasks[a].then = append(s.tasks[a].then, id)
			t.waits++
		}
	}
	s.tasks = append(s.tasks, t)
	s.left++
	if t.waits == 0 && run != nil {
		s.push(id)
	}
	return id
}

// arrival is something that happens elsewhere, until which tasks wait.
func (s *schedule) arrival() int { return s.add(0, nil) }

// finish says that a task was run or an arrival happened.
func (s *schedule) finish(id int) {
	t := &s.tasks[id]
	if t.done {
		return
	}
	t.done, t.run = true, nil
	s.left--
	for _, next := range t.then {
		if n := &s.tasks[next]; n.waits > 0 {
			if n.waits--; n.waits == 0 {
				s.push(next)
			}
		}
	}
}

// done reports whether tasks have been run.
func (s *schedule) done(ids []int) bool {
	for _, id := range ids {
		if !s.tasks[id].done {
			return false
		}
	}
	return true
}

// sendsNext reports whether the next task lets rows leave. Unless rows are relayed, what has arrived
// meanwhile lets nothing more urgent run, so that looking can wait: there are as many such tasks as arrivals, and each
// look is at all of these.
func (s *schedule) sendsNext() bool {
	kind, ok := s.next()
	return ok && kind == urgentSend
}

// next is the kind of the next task, if one is ready.
func (s *schedule) next() (kind int64, ok bool) {
	if len(s.ready.ids) == 0 {
		return 0, false
	}
	return s.tasks[s.ready.ids[0]].urgency >> 48, true
}

// step runs the most urgent task that is ready; it reports whether there was one.
func (s *schedule) step() bool {
	if len(s.ready.ids) == 0 {
		return false
	}
	id := heap.Pop(&s.ready).(int)
	s.tasks[id].run()
	s.finish(id)
	return true
}

// giveUp lets all arrivals happen: what is computed from here on means nothing.
func (s *schedule) giveUp() {
	for id := range s.tasks {
		if t := &s.tasks[id]; t.run == nil && !t.done {
			s.finish(id)
		}
	}
}

func (s *schedule) push(id int) {
	s.ready.tasks = s.tasks
	heap.Push(&s.ready, id)
}

// urgent is a heap of tasks by urgency, equals in the order they were added.
type urgent struct {
	tasks []task
	ids   []int
}

func (u *urgent) Len() int { return len(u.ids) }

func (u *urgent) Less(i, j int) bool {
	a, b := u.ids[i], u.ids[j]
	if x, y := u.tasks[a].urgency, u.tasks[b].urgency; x != y {
		return x < y
	}
	return a < b
}

func (u *urgent) Swap(i, j int) { u.ids[i], u.ids[j] = u.ids[j], u.ids[i] }

func (u *urgent) Push(id any) { u.ids = append(u.ids, id.(int)) }

func (u *urgent) Pop() any {
	last := len(u.ids) - 1
	id := u.ids[last]
	u.ids = u.ids[:last]
	return id
}
