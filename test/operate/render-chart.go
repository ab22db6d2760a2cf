// Renders a chart as Helm 3 does: with Go's own templates, sprig, and the validator of schemas that Helm uses. Reads releases from
// standard input as a JSON list, and writes for each its rendered files or the reason why Helm refuses it.
//
//	render-chart <folder of the chart>
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"github.com/xeipuuv/gojsonschema"
	"sigs.k8s.io/yaml"
)

type values = map[string]interface{}

type release struct {
	Release   string
	Namespace string
	Revision  int
	Values    values
}

type result struct {
	Files   map[string]string `json:"files,omitempty"`
	Refusal string            `json:"refusal,omitempty"`
}

// files are those of a chart that its templates may read: .Files.Get.
type files struct{ folder string }

func (f files) Get(name string) string {
	text, err := os.ReadFile(filepath.Join(f.folder, name))
	if err != nil {
		return ""
	}
	return string(text)
}

func main() {
	log.SetFlags(0)
	folder := os.Args[1]
	var releases []release
	if err := json.NewDecoder(os.Stdin).Decode(&releases); err != nil {
		log.Fatal(err)
	}
	results := make([]result, len(releases))
	for at, each := range releases {
		rendered, err := render(folder, each)
		if err != nil {
			results[at] = result{Refusal: err.Error()}
		} else {
			results[at] = result{Files: rendered}
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(results); err != nil {
		log.Fatal(err)
	}
}

func render(folder string, asked release) (map[string]string, error) {
	defaults, err := readYaml(filepath.Join(folder, "values.yaml"))
	if err != nil {
		return nil, err
	}
	chart, err := readYaml(filepath.Join(folder, "Chart.yaml"))
	if err != nil {
		return nil, err
	}
	merged := merge(defaults, asked.Values)
	if err := validate(filepath.Join(folder, "values.schema.json"), merged); err != nil {
		return nil, err
	}
	top := values{
		"Values":  merged,
		"Chart":   values{"Name": chart["name"], "Version": chart["version"], "AppVersion": chart["appVersion"]},
		"Release": values{"Name": asked.Release, "Namespace": asked.Namespace, "Service": "Helm", "Revision": asked.Revision},
		"Files":   files{folder},
	}
	templates := template.New("chart").Option("missingkey=zero")
	templates.Funcs(functions(templates))
	paths, err := filepath.Glob(filepath.Join(folder, "templates", "*"))
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if _, err := templates.New(filepath.Base(path)).Parse(string(text)); err != nil {
			return nil, err
		}
	}
	rendered := map[string]string{}
	for _, path := range paths {
		name := filepath.Base(path)
		if strings.HasPrefix(name, "_") {
			continue
		}
		var text bytes.Buffer
		if err := templates.ExecuteTemplate(&text, name, top); err != nil {
			return nil, err
		}
		rendered[name] = strings.ReplaceAll(text.String(), "<no value>", "")
	}
	return rendered, nil
}

// functions are sprig's without those that read the environment, and those of Helm that the chart uses.
func functions(templates *template.Template) template.FuncMap {
	all := sprig.TxtFuncMap()
	delete(all, "env")
	delete(all, "expandenv")
	all["toYaml"] = func(value interface{}) (string, error) {
		text, err := yaml.Marshal(value)
		return strings.TrimSuffix(string(text), "\n"), err
	}
	all["include"] = func(name string, dot interface{}) (string, error) {
		var text bytes.Buffer
		err := templates.ExecuteTemplate(&text, name, dot)
		return text.String(), err
	}
	all["required"] = func(sentence string, value interface{}) (interface{}, error) {
		if value == nil || value == "" {
			return nil, errors.New(sentence)
		}
		return value, nil
	}
	return all
}

func validate(schema string, merged values) error {
	text, err := os.ReadFile(schema)
	if err != nil {
		return err
	}
	checked, err := gojsonschema.Validate(gojsonschema.NewBytesLoader(text), gojsonschema.NewGoLoader(merged))
	if err != nil {
		return fmt.Errorf("values.schema.json: %w", err)
	}
	problems := make([]string, len(checked.Errors()))
	for at, problem := range checked.Errors() {
		problems[at] = problem.String()
	}
	if len(problems) > 0 {
		return errors.New(strings.Join(problems, "\n"))
	}
	return nil
}

// merge lays values over those of the chart; null takes a value away.
func merge(base, over values) values {
	for name, value := range over {
		inner, isMap := value.(values)
		below, isMapBelow := base[name].(values)
		switch {
		case value == nil:
			delete(base, name)
		case isMap && isMapBelow:
			base[name] = merge(below, inner)
		default:
			base[name] = value
		}
	}
	return base
}

func readYaml(path string) (values, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	read := values{}
	return read, yaml.Unmarshal(text, &read)
}
