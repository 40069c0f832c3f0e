"use strict";
// What a person changes in topics: entries of a file of edits, which the next run replays.

class TopicChanges {
  constructor(data, changed) {
    this.data = data;
    this.changed = changed;
    this.made = [];
  }

  // A topic's number may stand for another next time: a dialogue that is on it goes along.
  add(entry, ...numbers) {
    const topics = numbers.map((number) => this.data.topics[number]);
    const seen = topics
      .filter((topic) => topic.examples.length)
      .map((topic) => [topic.id, this.data.ids[topic.examples[0]]]);
    this.made.push({ ...entry, seen: Object.fromEntries(seen) });
    this.changed();
  }

  text() {
    const entries = [...this.data.edits, ...this.made];
    return entries.map((entry) => `- ${JSON.stringify(entry)}\n`).join("");
  }

  save() {
    const href = URL.createObjectURL(new Blob([this.text()], { type: "text/yaml" }));
    make("a", { href, download: "edits.yaml" }).click();
  }

  note() {
    if (!this.made.length) return [];
    const count = counted(this.made.length, "change");
    const wish = ({ seen, ...entry }) => {
      return Object.entries(entry).map(([key, value]) => `${key} ${[value].flat().join(", ")}`);
    };
    const undo = () => {
      this.made.pop();
      this.changed();
    };
    return [make("div.changes",
      make("b", `${count}, not saved yet`),
      make("ul", this.made.map((entry) => make("li", wish(entry).join(" · ")))),
      make("div.ways",
        changeButton("Save edits.yaml", () => this.save()), changeButton("Undo", undo)),
      soft("Put the file into this page's folder and run the command again: every run replays it."),
    )];
  }

  choiceBut(number) {
    const { topics } = this.data;
    const others = [...topics.keys()].filter((other) => {
      return other !== number && topics[other].id !== "none";
    });
    const option = (other) => make("option", { value: other }, topics[other].name);
    return make("select", others.map(option));
  }

  ofTopic(number) {
    const { topics } = this.data;
    const { id, name } = topics[number];
    if (id === "none") return [];
    const named = make("input", { value: name });
    const parts = make("input", { type: "number", min: 2, value: 2 });
    const other = this.choiceBut(number);
    const rename = () => this.add({ rename: id, name: named.value }, number);
    const merge = () => {
      this.add({ merge: [id, topics[other.value].id] }, number, other.value);
    };
    const split = () => this.add({ split: id, into: Number(parts.value) }, number);
    return [make("details.edit",
      make("summary", "Change this topic"),
      changeField("Name", named, changeButton("Rename", rename)),
      other.options.length > 0 && changeField("The same as", other, changeButton("Merge", merge)),
      changeField("Parts", parts, changeButton("Split", split)),
    )];
  }
}

function changeButton(text, click) {
  return make("button.button", { click }, text);
}

function changeField(text, ...parts) {
  return make("label.field", make("span", text), ...parts);
}
