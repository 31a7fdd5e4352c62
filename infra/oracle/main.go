// Reads questions as JSON, one a line, and writes what the reference implementation of each codec answers, one a line.
//
//	{"codec": "jsonpath", "text": "{.a}", "value": {"a": 1}}   ->   {"value": [1]}
//	{"codec": "duration", "text": "1x"}                        ->   {"error": "time: unknown unit ..."}
//
// tests/nightly asks it; nothing of anneal runs it.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	apis "github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/envsubst"
	"github.com/fluxcd/pkg/kustomize"
	"github.com/fluxcd/pkg/runtime/cel"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/kustomize/api/provider"
	"sigs.k8s.io/yaml"
)

type question struct {
	Codec string            `json:"codec"`
	Text  string            `json:"text"`
	Other string            `json:"other"`
	Names map[string]string `json:"names"`
	Value json.RawMessage   `json:"value"`
}

func (q question) decoded() (any, error) {
	var value any
	return value, utiljson.Unmarshal(q.Value, &value) // whole numbers are int64, as in what the API server sends
}

func (q question) object() (map[string]any, error) {
	value, err := q.decoded()
	object, _ := value.(map[string]any)
	return object, err
}

var codecs = map[string]func(question) (any, error){
	"yaml":      readYAML,
	"envsubst":  expand,
	"postBuild": substitute,
	"kstatus":   judge,
	"jsonpath":  find,
	"cel":       evaluate,
	"semver":    hold,
	"selector":  match,
	"json": func(q question) (any, error) {
		q.Value = json.RawMessage(q.Text)
		return q.decoded()
	},
	"duration": func(q question) (any, error) {
		found, err := time.ParseDuration(q.Text)
		return found.Nanoseconds(), err
	},
	"int": func(q question) (any, error) {
		found, err := strconv.ParseInt(q.Text, 0, 64)
		return found, err
	},
	"bool": func(q question) (any, error) {
		found, err := strconv.ParseBool(q.Text)
		return found, err
	},
}

// readYAML is the API server's decoder.
func readYAML(q question) (any, error) {
	made, err := yaml.YAMLToJSON([]byte(q.Text))
	return json.RawMessage(made), err
}

// expand is Flux' envsubst. other: "strict" refuses names without a value.
func expand(q question) (any, error) {
	made, err := envsubst.Eval(q.Text, func(name string) (string, bool) {
		value, known := q.Names[name]
		return value, known || q.Other != "strict"
	})
	return made, err
}

// substitute is the whole of Flux' postBuild for one object.
func substitute(q question) (any, error) {
	names := map[string]any{}
	for name, value := range q.Names {
		names[name] = value
	}
	kustomization := unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"postBuild": map[string]any{"substitute": names}},
	}}
	resource, err := provider.NewDefaultDepProvider().GetResourceFactory().FromBytes(q.Value)
	if err != nil {
		return nil, err
	}
	options := []kustomize.SubstituteOption{kustomize.SubstituteWithStrict(q.Other == "strict"), kustomize.SubstituteWithAlways(true)}
	made, err := kustomize.SubstituteVariables(context.Background(), nil, kustomization, resource, options...)
	if err != nil {
		return nil, err
	}
	if made == nil {
		made = resource
	}
	text, err := made.MarshalJSON()
	return json.RawMessage(text), err
}

// judge is kstatus, as Flux has it.
func judge(q question) (any, error) {
	object, err := q.object()
	if err != nil {
		return nil, err
	}
	found, err := status.Compute(&unstructured.Unstructured{Object: object})
	if err != nil {
		return nil, err
	}
	return found.Status, nil
}

// bare is what `kubectl wait` makes a path of: braces and the first point may be left out.
var bare = regexp.MustCompile(`^\{\.?([^{}]+)\}$|^\.?([^{}]+)$`)

// find is `kubectl get -o jsonpath=`, or else `kubectl wait --for=jsonpath=`, before what is found is printed.
func find(q question) (any, error) {
	value, err := q.decoded()
	if err != nil {
		return nil, err
	}
	found, err := follow(q.Text, value)
	named := bare.FindStringSubmatch(q.Text)
	if named == nil || (strings.HasPrefix(q.Text, "{") && (err == nil || !strings.HasPrefix(err.Error(), "unrecognized identifier"))) {
		return found, err
	}
	return follow("{."+named[1]+named[2]+"}", value)
}

func follow(text string, value any) (any, error) {
	path := jsonpath.New("path").AllowMissingKeys(true)
	if err := path.Parse(text); err != nil {
		return nil, err
	}
	groups, err := path.FindResults(value)
	if err != nil {
		return nil, err
	}
	found := []any{}
	for _, group := range groups {
		for _, each := range group {
			found = append(found, each.Interface())
		}
	}
	return found, nil
}

// evaluate is a healthCheckExpr of Flux.
func evaluate(q question) (any, error) {
	object, err := q.object()
	if err != nil {
		return nil, err
	}
	evaluator, err := cel.NewStatusEvaluator(&apis.HealthCheckExpressions{Current: q.Text})
	if err != nil {
		return nil, fmt.Errorf("unreadable: %w", err)
	}
	found, err := evaluator.Evaluate(context.Background(), &unstructured.Unstructured{Object: object})
	if err != nil {
		return nil, err
	}
	return found.Status == status.CurrentStatus, nil
}

// hold is a range of versions as Helm reads it.
func hold(q question) (any, error) {
	constraint, err := semver.NewConstraint(q.Text)
	if err != nil {
		return nil, err
	}
	version, err := semver.NewVersion(q.Other)
	if err != nil {
		return nil, err
	}
	return constraint.Check(version), nil
}

// match is a label selector as kubectl reads it.
func match(q question) (any, error) {
	selector, err := labels.Parse(q.Text)
	if err != nil {
		return nil, err
	}
	return selector.Matches(labels.Set(q.Names)), nil
}

// answer never fails: a reference that panics has an error, too.
func answer(line []byte) (made map[string]any) {
	defer func() {
		if found := recover(); found != nil {
			made = map[string]any{"error": fmt.Sprint("panic: ", found)}
		}
	}()
	var asked question
	if err := json.Unmarshal(line, &asked); err != nil {
		panic(err)
	}
	found, err := codecs[asked.Codec](asked)
	if err != nil {
		return map[string]any{"error": err.Error()}
	}
	return map[string]any{"value": found}
}

func main() {
	lines := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for {
		line, err := lines.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			made, failed := json.Marshal(answer(line))
			if failed != nil {
				made, _ = json.Marshal(map[string]any{"error": failed.Error()})
			}
			out.Write(append(made, '\n'))
		}
		if err != nil {
			return
		}
	}
}
