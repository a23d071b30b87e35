package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"
)

// SettingKey names a part of a [Desired]'s config.
type SettingKey string

// The settings of this version: each can be changed while tasks run.
const (
	SettingPaused    SettingKey = "claims.paused"     // bool: the rack takes no more tasks; those that run go on
	SettingHeartbeat SettingKey = "heartbeat.seconds" // whole seconds between two heartbeats, [MinHeartbeat] to [MaxHeartbeat]
	SettingLogLevel  SettingKey = "log.level"         // debug, info, warn or error
)

// Bounds of the time between two heartbeats. After 20 s without a word of the cloud a rack asks for a sign of life, which
// costs more than a heartbeat.
const (
	MinHeartbeat = 5 * time.Second
	MaxHeartbeat = 18 * time.Second
)

// Settings are what a [Desired] asks for. What it does not name is nil: the rack's own file decides.
type Settings struct {
	Paused    *bool
	Heartbeat *time.Duration
	LogLevel  *slog.Level
}

// SettingError is a setting that cannot be used: this version does not know it, or not its value.
type SettingError struct {
	Key    string `json:"key"`
	Reason string `json:"reason"`
}

// Error implements error.
func (e SettingError) Error() string { return fmt.Sprintf("%.80q %s", e.Key, e.Reason) }

// SettingKeys lists the settings of this version.
func SettingKeys() []SettingKey {
	return []SettingKey{SettingPaused, SettingHeartbeat, SettingLogLevel}
}

// ReadSettings reads a config. What cannot be used is told, in the order of the keys, and the rest is given all the
// same; an error means that the config is no object.
func ReadSettings(config json.RawMessage) (s Settings, unusable []SettingError, err error) {
	var all map[string]json.RawMessage
	if err := Unmarshal(config, &all); err != nil {
		return s, nil, err
	}
	if all == nil {
		return s, nil, errors.New("a configuration is an object, and this is null")
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if reason := s.read(SettingKey(key), all[key]); reason != "" {
			unusable = append(unusable, SettingError{key, reason})
		}
	}
	return s, unusable, nil
}

// read takes one setting, or says what is wrong with it.
func (s *Settings) read(key SettingKey, raw json.RawMessage) (reason string) {
	switch key {
	case SettingPaused:
		var on *bool
		if Unmarshal(raw, &on) != nil || on == nil {
			return "is not true or false"
		}
		s.Paused = on
	case SettingHeartbeat:
		var seconds *int64
		low, high := int64(MinHeartbeat/time.Second), int64(MaxHeartbeat/time.Second)
		if Unmarshal(raw, &seconds) != nil || seconds == nil || *seconds < low || *seconds > high {
			return fmt.Sprintf("is not %d to %d whole seconds", low, high)
		}
		every := time.Duration(*seconds) * time.Second
		s.Heartbeat = &every
	case SettingLogLevel:
		var word string
		err := Unmarshal(raw, &word)
		level, ok := logLevels[word]
		if err != nil || !ok {
			return "is not debug, info, warn or error"
		}
		s.LogLevel = &level
	default:
		names := make([]string, 0, 3)
		for _, k := range SettingKeys() {
			names = append(names, string(k))
		}
		return "is not one of " + strings.Join(names, ", ")
	}
	return ""
}

var logLevels = map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}
