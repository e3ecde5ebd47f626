// Package scaler answers KEDA's external scaler (COMP-16, COMP-8): how many pods the receivers of a queue or
// subscription need.
package scaler

import (
	"context"
	"math"
	"time"

	"github.com/sidebus/sidebus/proto/externalscaler"
	"github.com/sidebus/sidebus/proxy/access"
	"github.com/sidebus/sidebus/semantics"
)

// lookEvery is how often a stream looks whether there is work.
const lookEvery = time.Second

// Service implements the external scaler. Its caller authorizes calls; streams authorize themselves, by the caller in
// their context (see access). It is safe for concurrent use.
type Service struct {
	externalscaler.UnimplementedExternalScalerServer

	readings *readings
	stopping <-chan struct{}
}

// New returns a Service that reads store. Streams end when stopping is closed.
func New(store Store, stopping <-chan struct{}) *Service {
	return &Service{readings: newReadings(store), stopping: stopping}
}

// IsActive reports whether the source needs a receiver if it has none.
func (s *Service) IsActive(
	ctx context.Context, ref *externalscaler.ScaledObjectRef,
) (*externalscaler.IsActiveResponse, error) {
	t, err := parse(ref)
	if err != nil {
		return nil, err
	}
	now, err := s.look(ctx, t)
	if err != nil {
		return nil, err
	}
	return &externalscaler.IsActiveResponse{Result: now.isAny()}, nil
}

// GetMetricSpec returns how much of each metric one replica is for. It reads nothing, so that a ScaledObject can be
// created before its source.
func (s *Service) GetMetricSpec(
	_ context.Context, ref *externalscaler.ScaledObjectRef,
) (*externalscaler.GetMetricSpecResponse, error) {
	t, err := parse(ref)
	if err != nil {
		return nil, err
	}
	response := &externalscaler.GetMetricSpecResponse{}
	for _, of := range t.targets {
		response.MetricSpecs = append(response.MetricSpecs, &externalscaler.MetricSpec{
			MetricName: string(of.metric), TargetSize: whole(of.value), TargetSizeFloat: of.value,
		})
	}
	return response, nil
}

// GetMetrics returns the value of one metric.
func (s *Service) GetMetrics(
	ctx context.Context, request *externalscaler.GetMetricsRequest,
) (*externalscaler.GetMetricsResponse, error) {
	t, err := parse(request.GetScaledObjectRef())
	if err != nil {
		return nil, err
	}
	now, err := s.look(ctx, t)
	if err != nil {
		return nil, err
	}
	metric := Metric(request.GetMetricName())
	if !t.scalesBy(metric) {
		return nil, semantics.InvalidField(
			"metricName", "is %q, which the metadata does not ask for", semantics.Shorten(request.GetMetricName()),
		)
	}
	value := now.value(metric, time.Now())
	return &externalscaler.GetMetricsResponse{MetricValues: []*externalscaler.MetricValue{
		{MetricName: string(metric), MetricValue: whole(value), MetricValueFloat: value},
	}}, nil
}

// whole is for versions of KEDA that know no fractions. Less than one is not nothing.
func whole(value float64) int64 { return int64(math.Ceil(value)) }

// StreamIsActive sends whether the source needs a receiver: at once, and when it changes. While the source cannot be
// read, or is not there, nothing changes: KEDA would wait up to a minute before it opened another stream.
func (s *Service) StreamIsActive(
	ref *externalscaler.ScaledObjectRef, stream externalscaler.ExternalScaler_StreamIsActiveServer,
) error {
	// The rest of the metadata, such as a certificate for KEDA, is not kept for as long as the stream lasts.
	source := &externalscaler.ScaledObjectRef{
		ScalerMetadata: map[string]string{sourceKey: ref.GetScalerMetadata()[sourceKey]},
	}
	check := func() error {
		return access.Check(stream.Context(), externalscaler.ExternalScaler_StreamIsActive_FullMethodName, source)
	}
	if err := check(); err != nil {
		return err
	}
	t, err := parse(ref)
	if err != nil {
		return err
	}
	ctx, end := access.While(stream.Context(), check)
	defer end()
	next := time.NewTicker(lookEvery)
	defer next.Stop()
	for isFirst, wasActive := true, false; ; {
		now, err := s.look(ctx, t)
		if isFinal(err) {
			return err
		}
		if isActive := now.isAny(); err == nil && (isFirst || isActive != wasActive) {
			if err := stream.Send(&externalscaler.IsActiveResponse{Result: isActive}); err != nil {
				return err
			}
			isFirst, wasActive = false, isActive
		}
		select {
		case <-next.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.stopping:
			return nil // KEDA opens another one soon
		}
	}
}

// isFinal reports whether an error is one of the metadata, which only another stream can correct.
func isFinal(err error) bool {
	code := semantics.CodeOf(err)
	return code == semantics.InvalidArgument || code == semantics.SessionNotSupported
}

// look reads the source of a trigger.
func (s *Service) look(ctx context.Context, t trigger) (work, error) {
	now, err := s.readings.get(ctx, t.source)
	if err == nil && t.scalesBy(Sessions) && !now.hasSessions {
		err = semantics.FieldError(
			semantics.SessionNotSupported, sessionsKey, "is for sources with sessions, and %s has none; use messages",
			t.source.Path,
		)
	}
	return now, err
}
