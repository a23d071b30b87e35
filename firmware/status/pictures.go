package status

import (
	"context"
	"net/http"
	"regexp"

	"phonerack/agent/runner/record"
	"phonerack/sync/wire"
)

// screen is the page with the picture of a slot's phone. The picture is taken when the browser asks for it.
func (p *Page) screen(w http.ResponseWriter, r *http.Request) error {
	_, s, err := p.find(r.PathValue("slot"))
	if err != nil {
		return err
	}
	v := p.view(r, "screen.title", "")
	v.Body = v.cell(s)
	return p.answer(w, r, http.StatusOK, "screen.html", v, s)
}

// screenJPEG takes the picture.
func (p *Page) screenJPEG(w http.ResponseWriter, r *http.Request) error {
	_, s, err := p.find(r.PathValue("slot"))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), pictureTimeout)
	defer cancel()
	select {
	case p.looks <- struct{}{}:
		defer func() { <-p.looks }()
	case <-ctx.Done():
		return wire.Refuse(wire.LimitExceeded, map[string]any{"what": "pictures at the same time", "limit": maxLooks})
	}
	picture, err := p.o.Source.Picture(ctx, s.Number)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "image/jpeg")
	return send(w, http.StatusOK, picture.JPEG)
}

// Bounds of lists.
const (
	maxTasks     = 50
	stepsPerPage = 20
)

// tasks lists the last ones.
func (p *Page) tasks(w http.ResponseWriter, r *http.Request) error {
	all, err := p.o.Source.Tasks(r.Context(), maxTasks)
	if err != nil {
		return err
	}
	v := p.view(r, "tasks.title", "")
	var list []taskView
	for _, t := range all {
		list = append(list, v.task(t))
	}
	v.Body = list
	return p.answer(w, r, http.StatusOK, "tasks.html", v, map[string]any{"tasks": all})
}

// taskBody is one task with a part of its trajectory.
type taskBody struct {
	Task       taskView
	Steps      []stepView
	Prev, More int // pages before and after, from 1; 0 for none
}

type stepView struct {
	record.Step
	Args, Words string
}

var (
	taskID      = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	stepPicture = regexp.MustCompile(`^[0-9]{3,6}\.jpg$`)
)

// task shows a trajectory, so many steps a page.
func (p *Page) task(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("task")
	if !taskID.MatchString(id) {
		return wire.Refuse(wire.TaskUnknown, map[string]any{"task": id})
	}
	all, err := p.o.Source.Tasks(r.Context(), maxTasks)
	if err != nil {
		return err
	}
	v := p.view(r, "task.title", id)
	b := taskBody{}
	found := false
	for _, t := range all {
		if t.ID == id {
			b.Task, found = v.task(t), true
		}
	}
	if !found {
		return wire.Refuse(wire.TaskUnknown, map[string]any{"task": id})
	}
	steps, err := p.o.Source.Steps(r.Context(), id)
	if err != nil {
		return err
	}
	if wantsJSON(r.Header.Get("Accept")) {
		return p.answer(w, r, http.StatusOK, "", nil, map[string]any{"task": b.Task.TaskStatus, "steps": steps})
	}
	from, page := pageOf(r, len(steps), stepsPerPage)
	if page > 1 {
		b.Prev = page - 1
	}
	if from+stepsPerPage < len(steps) {
		b.More = page + 1
	}
	for _, s := range steps[from:min(from+stepsPerPage, len(steps))] {
		sv := stepView{Step: s, Args: cut(string(s.Arguments), maxTextBytes)}
		if s.Refusal != nil {
			sv.Words = s.Refusal.Sentence(v.Lang)
		}
		b.Steps = append(b.Steps, sv)
	}
	v.Body = b
	return p.answer(w, r, http.StatusOK, "task.html", v, nil)
}

// taskPicture is one picture of a trajectory.
func (p *Page) taskPicture(w http.ResponseWriter, r *http.Request) error {
	id, name := r.PathValue("task"), r.PathValue("picture")
	if !taskID.MatchString(id) || !stepPicture.MatchString(name) { // no path leads out of the folder
		return wire.Refuse(wire.PageUnknown, nil)
	}
	jpeg, err := p.o.Source.StepPicture(r.Context(), id, name)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "image/jpeg")
	return send(w, http.StatusOK, jpeg)
}
