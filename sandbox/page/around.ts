/**
 * What stands around the workspace and no Slack would show: who may do what, the weather, and everybody's phones.
 * Types only, so that a browser can import this file too; `weather.ts` and `page.ts` make it.
 */

export interface Around {
  guide?: Guide;
  weather?: Forecast;
  /** What made people's phones buzz, newest last. */
  phones: Buzz[];
}

/** A command that the page writes for whoever presses its button. */
export interface Try {
  /** Handle of who says it. */
  as: string;
  channel: string;
  text: string;
  why: string;
}

export interface Guide {
  /** Under the title of the screen. */
  subtitle: string;
  /** What to know of all of them. */
  about: string;
  people: { who: string; may: string }[];
  tries: Try[];
  /** Steps in their order: a command, becoming somebody, or opening the weather. */
  story: (Try | { be: string; channel: string; why: string } | { weather: true; why: string })[];
}

export interface Forecast {
  /** What to try while someone else changes a VM behind the app's back. */
  aboutStrangers: string;
  vms: SeenVm[];
  switches: Switch[];
}

/** A VM as it really is, whatever anybody was told. */
export interface SeenVm {
  id: string;
  name: string;
  project: string;
  status: string;
  /** What the app's calls did to it: `1 restart, 1 snapshot`. */
  done: string;
}

export interface Switch {
  id: string;
  label: string;
  on: boolean;
  /** What to try while it is on, who does it, and where. */
  tries: Attempt;
  as: string;
  channel: string;
  /** What should hold all the while. */
  holds: string;
}

/** A command to type, or a button to press on a message. */
export type Attempt = { text: string } | { button: string };

export interface Buzz {
  userId: string;
  channelId: string;
  ts: string;
  at: number;
  text: string;
}

/** What somebody else may do to a VM, behind the app's back. */
export type StrangersDo = "stop" | "reboot" | "replace";
