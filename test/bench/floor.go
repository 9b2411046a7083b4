package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// runFloor makes the StatefulSets and Services of the clusters directly, the
// backend's when the frontend is Ready, and returns when all Pods are Ready:
// the time that no operator can go below on this machine.
func (s *scene) runFloor(ctx context.Context) (time.Duration, error) {
	s.sayf("without an operator")
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := newArrivals(s.n)
	next := make(chan place, s.n)
	factory := informers.NewSharedInformerFactory(s.client, 0)
	seen := map[string]bool{} // used by the one goroutine that calls the handlers
	ready := func(obj any) {
		pod, ok := obj.(*corev1.Pod)
		if !ok || !podReady(pod) || seen[pod.Namespace+"/"+pod.Name] {
			return
		}
		seen[pod.Namespace+"/"+pod.Name] = true
		if pod.Labels["component"] == "be" {
			done.arrive(pod.Namespace + "/" + pod.Name)
			return
		}
		next <- place{pod.Namespace, pod.Labels["cluster"]}
	}
	_, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: ready, UpdateFunc: func(_, obj any) { ready(obj) },
	})
	if err != nil {
		return 0, err
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())

	began := time.Now()
	err = inParallel(ctx, s.n, func(ctx context.Context, i int) error { return s.createComponent(ctx, s.places[i], "fe") })
	if err != nil {
		return 0, err
	}
	failed := make(chan error, 1)
	go func() {
		failed <- inParallel(ctx, s.n, func(ctx context.Context, _ int) error {
			select {
			case p := <-next:
				return s.createComponent(ctx, p, "be")
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	if err := <-failed; err != nil {
		return 0, err
	}
	if err := s.awaitAll(ctx, nil, done); err != nil {
		return 0, err
	}
	took := done.since(began)
	s.sayf("without an operator: %s", took[len(took)-1].Round(time.Millisecond))
	return took[len(took)-1], nil
}

func podReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// createComponent makes two Services and a StatefulSet with one Pod.
func (s *scene) createComponent(ctx context.Context, p place, component string) error {
	name := p.name + "-" + component
	labels := map[string]string{"cluster": p.name, "component": component}
	ports := []corev1.ServicePort{{Name: "query", Port: 9030}}
	for _, service := range []*corev1.Service{
		{ObjectMeta: metav1.ObjectMeta{Name: name + "-internal"}, Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Selector: labels, Ports: ports}},
		{ObjectMeta: metav1.ObjectMeta{Name: name + "-service"}, Spec: corev1.ServiceSpec{Selector: labels, Ports: ports}},
	} {
		if _, err := s.client.CoreV1().Services(p.namespace).Create(ctx, service, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create service %q: %w", service.Name, err)
		}
	}
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.StatefulSetSpec{
			ServiceName: name + "-internal", Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: component, Image: "apache/doris:" + component + "-2.1.8"}}},
			},
		},
	}
	if _, err := s.client.AppsV1().StatefulSets(p.namespace).Create(ctx, set, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create stateful set %q: %w", name, err)
	}
	return nil
}
