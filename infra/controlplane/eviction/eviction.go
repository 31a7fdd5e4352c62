// Package eviction is of the kubelet's package of that name what a server of the control plane calls: podgc asks one thing.
// The rest of it would compile the kubelet, cAdvisor and containerd's clients, a hundred packages that nothing here runs.
package eviction

import v1 "k8s.io/api/core/v1"

// PodIsEvicted is true of a pod that a kubelet has evicted.
func PodIsEvicted(status v1.PodStatus) bool {
	return status.Phase == v1.PodFailed && status.Reason == "Evicted"
}
