package redisstore

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/sidebus/sidebus/redisstore/audit"
	"github.com/sidebus/sidebus/semantics"
)

// Examine implements semantics.Examiner. It reads settings, INFO, and the keys of entities, each entity in one
// transaction, which no script can interrupt. So it leaves out entities that hold more than mostExamined messages or
// mostExaminedBytes, unless they are named.
func (s *Store) Examine(
	ctx context.Context, what semantics.Examination, report func(semantics.Finding),
) error {
	offsets := map[string]time.Duration{}
	primaries, err := s.servers.primaries(ctx)
	if err != nil {
		return unlisted(err)
	}
	isOther := false
	for _, server := range primaries {
		facts, err := readServer(ctx, server)
		if isSentinel(facts.info) {
			return errSentinel()
		}
		if err != nil {
			return storeError(err, false)
		}
		facts.where, facts.allowEviction = s.nameOf(server), s.options.AllowEviction
		_, facts.isCluster = s.servers.(*cluster)
		for _, finding := range facts.findings() {
			report(finding)
		}
		isOther = isOther || facts.isNode() != facts.isCluster
		offsets[facts.where] = facts.clockOffset
	}
	if isOther { // that is reported, and no key can be read
		return nil
	}
	for _, finding := range compareClocks(offsets) {
		report(finding)
	}
	if err := s.examineLevels(ctx, report); err != nil {
		return storeError(err, false)
	}
	if err := s.examineUpkeep(ctx, report); err != nil {
		return storeError(err, false)
	}
	return s.examineEntities(ctx, what, report)
}

// compareClocks finds servers whose clocks differ: times move when an entity moves from one to the other.
func compareClocks(offsets map[string]time.Duration) []semantics.Finding {
	if len(offsets) < 2 {
		return nil
	}
	var all []time.Duration
	for _, offset := range offsets {
		all = append(all, offset)
	}
	if apart := slices.Max(all) - slices.Min(all); apart > mostClockOffset {
		return []semantics.Finding{{
			Severity: semantics.Warning, Subject: "clock",
			Text: fmt.Sprintf("the clocks of the servers differ by up to %s: locks and schedules end earlier or later "+
				"after a failover", apart.Round(time.Millisecond)),
			Advice: "keep all hosts on NTP",
		}}
	}
	return nil
}

// overdue is how long an entity may wait for its upkeep. Any sidecar of the namespace does it within seconds.
const overdue = time.Minute

// examineUpkeep finds entities whose alarms are long due, as when no sidecar runs.
func (s *Store) examineUpkeep(ctx context.Context, report func(semantics.Finding)) error {
	var late, names int64
	for _, r := range s.registries {
		server, err := s.servers.of(ctx, r.key("names"))
		if err != nil {
			return err
		}
		now, err := server.Time(ctx).Result()
		if err != nil {
			return err
		}
		limit := strconv.FormatInt(now.Add(-overdue).UnixMilli(), 10)
		n, err := server.ZCount(ctx, r.key("alarms"), "-inf", limit).Result()
		if err != nil {
			return err
		}
		listed, err := server.ZCard(ctx, r.key("names")).Result()
		if err != nil {
			return err
		}
		late, names = late+n, names+listed
	}
	found := semantics.Finding{
		Severity: semantics.Fine, Subject: "upkeep",
		Text: fmt.Sprintf("queues and topics: %d, none waits for upkeep", names),
	}
	if late > 0 {
		found = semantics.Finding{
			Severity: semantics.Warning, Subject: "upkeep",
			Text: fmt.Sprintf("%d of %d queues and topics have waited for more than %s to be looked after: their expired "+
				"messages stay, and their scheduled messages are late", late, names, overdue),
			Advice: "start a sidecar with this namespace, or look in the logs of those that run for why upkeep fails",
		}
	}
	report(found)
	return nil
}

// mostExamined and mostExaminedBytes bound the entities that are read without being named.
const (
	mostExamined      = 10_000
	mostExaminedBytes = 32 << 20
)

// looks is how often an entity is read before what is wrong each time counts. A sidecar may just be about to set an
// alarm, or have two steps to do.
const (
	looks        = 3
	betweenLooks = time.Second
)

func (s *Store) examineEntities(
	ctx context.Context, what semantics.Examination, report func(semantics.Finding),
) error {
	keys := keysInUse{keys: s.sealing.now(), names: map[string]bool{}}
	auditor := audit.New(s.servers.universal(), s.namespace).Showing(keys.contents())
	paths, isNamed := what.Paths, len(what.Paths) > 0
	if !isNamed {
		var err error
		if paths, err = auditor.Listed(ctx); err != nil {
			return storeError(err, false)
		}
	}
	sound := 0
	for i, path := range paths {
		if what.Progress != nil {
			what.Progress(path, i+1, len(paths))
		}
		size, err := auditor.Weigh(ctx, path)
		switch {
		case err != nil:
			return storeError(err, false)
		case !size.Exists && isNamed:
			return semantics.NotFound(path)
		case !size.Exists: // it was deleted, or is being made
			continue
		case !isNamed && (size.Messages > mostExamined || size.Bytes > mostExaminedBytes):
			report(semantics.Finding{
				Severity: semantics.Fine, Where: path, Subject: "structure",
				Text: fmt.Sprintf("not checked: it holds %d messages with %d MiB, and Redis serves no other client while it "+
					"reads them", size.Messages, size.Bytes>>20),
				Advice: "name it to check it all the same, when the load is low",
			})
			continue
		}
		faults, err := lastingFaults(ctx, auditor, path)
		if err != nil {
			return storeError(err, false)
		}
		for _, fault := range faults {
			report(semantics.Finding{
				Severity: semantics.Problem, Where: path, Subject: "structure", Text: fault,
				Advice: "something else than Sidebus has changed keys, or Sidebus has a bug: please report it with this line",
			})
		}
		if len(faults) == 0 {
			sound++
		}
	}
	if found, ok := keys.finding(); ok {
		report(found)
	}
	if sound > 0 {
		report(semantics.Finding{
			Severity: semantics.Fine, Subject: "structure",
			Text: fmt.Sprintf("queues and topics checked: %d, all are consistent", sound),
		})
	}
	return nil
}

// lastingFaults reads an entity until a look finds nothing, and returns what every look found.
func lastingFaults(ctx context.Context, auditor *audit.Auditor, path string) ([]string, error) {
	var lasting []string
	for look := range looks {
		faults, err := auditor.Faults(ctx, path)
		if err != nil {
			return nil, err
		}
		if look == 0 {
			lasting = faults
		}
		lasting = slices.DeleteFunc(lasting, func(fault string) bool { return !slices.Contains(faults, fault) })
		if len(lasting) == 0 || look+1 == looks {
			break
		}
		select {
		case <-time.After(betweenLooks):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return lasting, nil
}
