package serve

import "starling/nn"

// validThreshold reports whether thresholds are probabilities, and as many as the model decides by.
func (c *Config) validThreshold() bool {
	for _, t := range c.Threshold {
		if !(t >= 0 && t <= 1) {
			return false
		}
	}
	switch len(c.Threshold) {
	case 0:
		return true
	case 1:
		return c.Positive >= 0 && c.Positive < 2 && (c.Model.Out == 2 && c.Task != nn.TaskMultiLabel ||
			c.Model.Out == 1 && c.Task == nn.TaskMultiLabel)
	}
	return len(c.Threshold) == c.Model.Out && c.Task == nn.TaskMultiLabel
}

// class is the one that is predicted, from the probabilities of all.
func (c *Config) class(probabilities []float32) int32 {
	if len(c.Threshold) != 1 || len(probabilities) != 2 {
		return largest(probabilities)
	}
	if float64(probabilities[c.Positive]) >= c.Threshold[0] {
		return int32(c.Positive)
	}
	return int32(1 - c.Positive)
}

// decide is the class that is predicted, from logits, which do not round to 1 as probabilities do. It makes them
// probabilities.
func (c *Config) decide(row []float32, task string) int32 {
	likeliest := largest(row)
	if probability(row, task); len(c.Threshold) > 0 {
		return c.class(row)
	}
	return likeliest
}

// marks reports of logits whether one of several labels is predicted.
func (c *Config) marks(task string) func(logit float32, class int) bool {
	if len(c.Threshold) == 0 {
		return func(logit float32, _ int) bool { return logit > 0 }
	}
	judge := c.judge(task)
	return func(logit float32, class int) bool { return judge.Reaches(float64(logit), class) }
}

// judge decides as the run did.
func (c *Config) judge(task string) *nn.Judge {
	return &nn.Judge{Task: task, Classes: c.Model.Out, Positive: c.Positive, Threshold: c.Threshold}
}
