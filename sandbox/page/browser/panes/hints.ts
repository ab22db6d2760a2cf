import type { Seen } from "../../../slack/seen.ts";
import { el, newId } from "../dom/dom.ts";

interface Hint {
  /** What is put in place of the word being written. */
  insert: string;
  label: string;
  usage: string;
  about: string;
}

export interface Hints {
  node: HTMLElement;
  update(seen: Seen): void;
  /** True when the key was meant for the hints. */
  takes(event: KeyboardEvent): boolean;
  close(): void;
}

/** What can be written next: the app's slash commands after `/`, names after `@` and `#`. */
export function createHints(input: HTMLTextAreaElement): Hints {
  let shown: Hint[] = [];
  let active = 0;
  const node = el("div", {
    class: "hints",
    id: newId(),
    role: "listbox",
    "aria-label": "Suggestions",
    hidden: true,
  });
  input.setAttribute("aria-controls", node.id);

  const draw = () => {
    node.hidden = shown.length === 0;
    node.replaceChildren(
      ...shown.map((hint, index) =>
        el(
          "div",
          {
            role: "option",
            class: index === active ? "active" : undefined,
            "aria-selected": String(index === active),
            onpointerdown: (event: Event) => pick(event, hint),
          },
          el("span", {}, el("b", {}, hint.label), " ", el("span", { class: "usage" }, hint.usage)),
          el("small", {}, hint.about),
        ),
      ),
    );
  };
  const pick = (event: Event, hint: Hint) => {
    event.preventDefault();
    const { start, end } = wordAt(input);
    input.setRangeText(hint.insert, start, end, "end");
    input.dispatchEvent(new Event("input"));
    input.focus();
  };
  const close = () => {
    shown = [];
    draw();
  };
  return {
    node,
    close,
    update: (seen) => {
      const before = shown[active]?.insert;
      shown = hintsFor(input, seen);
      active = Math.max(
        0,
        shown.findIndex((hint) => hint.insert === before),
      );
      draw();
    },
    takes: (event) => {
      const hint = shown[active];
      if (!hint) return false;
      if (event.key === "Escape") close();
      else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
        active = (active + (event.key === "ArrowDown" ? 1 : -1) + shown.length) % shown.length;
        draw();
      } else if (
        hint.insert !== "" &&
        (event.key === "Tab" || (event.key === "Enter" && !alreadyThere(input, hint))) &&
        !event.shiftKey
      ) {
        pick(event, hint);
        return true;
      } else return false;
      event.preventDefault();
      return true;
    },
  };
}

/** Enter on a finished word sends it. */
function alreadyThere(input: HTMLTextAreaElement, hint: Hint): boolean {
  const { start, end } = wordAt(input);
  return input.value.slice(start, end) === hint.insert.trim();
}

function wordAt(input: HTMLTextAreaElement): { start: number; end: number } {
  const end = input.selectionEnd;
  const start = input.value.slice(0, end).search(/\S*$/);
  return { start, end };
}

/** How a hint tells the forms of a command apart. */
const between = " · ";
const slacksOwn = [
  { name: "/invite", description: "Bring somebody into this channel", usageHint: "@somebody" },
];

function hintsFor(input: HTMLTextAreaElement, seen: Seen): Hint[] {
  const { start, end } = wordAt(input);
  const word = input.value.slice(start, end).toLowerCase();
  const command = /^\/\S*/.exec(input.value)?.[0];
  if (command !== undefined && start === 0)
    return [...seen.commands, ...slacksOwn]
      .filter(({ name }) => name.startsWith(word))
      .map((one) => ({
        insert: `${one.name} `,
        label: one.name,
        usage: one.usageHint.includes(between) ? "" : one.usageHint,
        about: one.description,
      }));
  const known = [...seen.commands, ...slacksOwn].find(({ name }) => name === command);
  if (known && !word.startsWith("@")) {
    const isFirst = /^\/\S+\s+\S*$/.test(input.value.slice(0, end));
    const written = input.value.slice(known.name.length).trim();
    return known.usageHint
      .split(between)
      .map((usage) => [usage, usage.split(" ")[0] ?? ""] as const)
      .filter(([, verb]) => (isFirst ? verb.startsWith(word) : written.startsWith(`${verb} `)))
      .map(([usage, verb]) => ({
        insert: isFirst && /^\w/.test(verb) ? `${verb} ` : "",
        label: `${known.name} ${verb}`,
        usage: usage.slice(verb.length),
        about: "",
      }));
  }
  if (/^@[\w.-]*$/.test(word)) {
    const people = seen.people.filter(
      (person) =>
        person.active && `${person.name} ${person.realName}`.toLowerCase().includes(word.slice(1)),
    );
    const groups = seen.groups.filter((group) =>
      group.handle.toLowerCase().includes(word.slice(1)),
    );
    return [
      ...people.map((person) => ({
        insert: `@${person.name} `,
        label: `@${person.name}`,
        usage: "",
        about: person.realName,
      })),
      ...groups.map((group) => ({
        insert: `@${group.handle} `,
        label: `@${group.handle}`,
        usage: "",
        about: group.name,
      })),
    ].slice(0, 8);
  }
  if (/^#[\w.-]*$/.test(word) && word !== "#") {
    const channels = seen.channels.filter(
      (channel) => channel.kind !== "direct" && channel.name.includes(word.slice(1)),
    );
    return channels.slice(0, 8).map((channel) => ({
      insert: `#${channel.name} `,
      label: `#${channel.name}`,
      usage: "",
      about: "",
    }));
  }
  return [];
}
