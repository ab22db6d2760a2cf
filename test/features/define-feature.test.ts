import { describe, expect, it } from "vitest";
import * as z from "zod";
import { commands } from "../../src/commands/index.ts";
import { type Layers, commandsWith, defineFeature } from "../../src/features/define-feature.ts";
import { features } from "../../src/features/index.ts";
import { untoldOf } from "../../src/features/status-part.ts";
import { defineParts } from "../../src/registry/service-key.ts";
import { parseCommand } from "../../src/registry/parse.ts";
import { homeTabOf } from "../../src/talk/service-keys.ts";
import { startFeatures } from "../../src/operate/start-features.ts";
import { vmTarget } from "../core/asking.ts";

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- nothing here uses the others
const layers = { editMs: 1, commands: [], at: undefined } as unknown as Layers;
const nothing = async () => undefined;

describe("a feature", () => {
  it("gets the layers that it names, and no other", () => {
    const seen: object[] = [];
    const parcels = defineFeature({
      name: "parcels",
      needs: ["editMs"],
      start: (on) => (seen.push(on), {}),
    });
    startFeatures([parcels], layers);
    expect(seen).toEqual([{ editMs: 1 }]);
  });

  it("is named like its folder", () => {
    const names = features.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
  });

  it("adds commands, each after those with the same first word", () => {
    const restart = commands.find(({ name }) => name === "vm restart");
    if (!restart) throw new Error("there is no vm restart");
    const parcels = defineFeature({
      name: "parcels",
      commands: [{ ...restart, name: "vm parcel" }],
    });
    const names = commandsWith([parcels]).map(({ name }) => name);
    const lastOfVms = commands.map(({ name }) => name).findLast((name) => name.startsWith("vm "));
    expect(names[names.indexOf("vm parcel") - 1]).toBe(lastOfVms);
    expect(names).toHaveLength(commandsWith([]).length + 1);
  });

  it("adds flags to commands that others bring, which are refused without it", () => {
    const express = z.boolean().optional().meta({ isFlag: true });
    const parcels = (flag: string) =>
      defineFeature({
        name: "parcels",
        flags: ({ name }) => (name === "vm restart" ? { [flag]: express } : undefined),
      });
    const read = (words: string, some = [parcels("express")]) => {
      const parsed = parseCommand(words, commandsWith(some));
      return "refusal" in parsed ? parsed.refusal : parsed.input;
    };
    const words = "vm restart web-1 --express";
    expect(read(words)).toEqual({ vms: ["web-1"], express: true });
    expect(read(words, [])).toMatchObject({
      text: "/vm restart has no --express. Nothing was done.",
      hint: "Usage: `/vm restart <vm…>`.",
    });
    expect(read("vm start web-1 --express")).toHaveProperty("text");
    expect(() => commandsWith([parcels("vms")])).toThrow("vm restart has an argument vms");
  });

  it("hears of requests and freezes, and contributes to whoever asks", async () => {
    const heard: string[] = [];
    const parcels = defineFeature({
      name: "parcels",
      start: () => ({
        presses: { parcel: nothing },
        on: {
          requestMade: async ({ id }) => void heard.push(id),
          freezeChanged: async () => void heard.push("freeze"),
        },
        provides: [
          untoldOf.providedBy(async () => [{ source: "red", words: ["parcel", "parcels"] }]),
        ],
      }),
    });
    const idle = defineFeature({ name: "idle" });
    const running = startFeatures([parcels, idle], layers);
    const origin = { kind: "typed", interaction: "1" } as const;
    const made = { id: "r-1", origin, command: "vm restart", target: vmTarget("web-1") };
    await running.contributed.requestMade({ ...made, createdAt: 1 });
    await running.emit("freezeChanged");
    expect(heard).toEqual(["r-1", "freeze"]);
    expect(Object.keys(running.contributed.presses)).toEqual(["parcel"]);
    expect(await Promise.all(untoldOf(running).map((list) => list()))).toHaveLength(1);
  });

  it("hears what another one fails to take in, and whoever tells it learns of the failure", async () => {
    const heard: string[] = [];
    const listening = (name: string, freezeChanged: () => Promise<unknown>) =>
      defineFeature({ name, start: () => ({ on: { freezeChanged } }) });
    const { emit } = startFeatures(
      [
        listening("fails", () => Promise.reject(new Error("full"))),
        listening("hears", async () => heard.push("freeze")),
      ],
      layers,
    );
    await expect(emit("freezeChanged")).rejects.toThrow("full");
    expect(heard).toEqual(["freeze"]);
  });

  it("says which of its buttons one person answers for all", () => {
    const parcels = defineFeature({
      name: "parcels",
      start: () => ({
        presses: {
          "parcel:open": nothing,
          "parcel:sign": { isAnsweredForAll: true, handle: nothing },
        },
      }),
    });
    const { contributed } = startFeatures([parcels], layers);
    expect(Object.keys(contributed.presses)).toEqual(["parcel:open", "parcel:sign"]);
    expect(contributed.answeredForAll).toEqual(["parcel:sign"]);
  });

  it("is refused when another one has a button of the same name", () => {
    const one = (name: string) =>
      defineFeature({ name, start: () => ({ presses: { parcel: nothing } }) });
    expect(() => startFeatures([one("a"), one("b")], layers)).toThrow("two features handle parcel");
  });

  it("is refused when another one has the Home tab", () => {
    const homeTab = { show: async () => true, pressed: nothing };
    const one = (name: string) =>
      defineFeature({ name, start: () => ({ provides: [homeTabOf.providedBy(homeTab)] }) });
    expect(() => startFeatures([one("a"), one("b")], layers)).toThrow(
      "two features provide the Home tab",
    );
  });

  it("sees the contributions of all features once each was started", () => {
    const linesOf = defineParts<string>("lines");
    let lines: () => readonly string[] = () => [];
    const first = defineFeature({
      name: "first",
      needs: ["services"],
      start(on) {
        lines = () => linesOf(on);
        return {};
      },
    });
    const adding = (name: string) =>
      defineFeature({ name, start: () => ({ provides: [linesOf.providedBy(name)] }) });
    startFeatures([first, adding("next"), adding("last")], layers);
    expect(lines()).toEqual(["next", "last"]);
  });

  it("may change its schedules, in addition to fixed ones", async () => {
    const schedule = (name: string) => ({
      name,
      repeat: { every: 1000 },
      run: async () => undefined,
    });
    let named = ["a"];
    const comes = defineFeature({
      name: "comes",
      start: () => ({ schedules: async () => named.map(schedule) }),
    });
    const stays = defineFeature({ name: "stays", start: () => ({ schedules: [schedule("s")] }) });
    const { schedules } = startFeatures([comes, stays], layers);
    const names = async () => (await schedules()).map(({ name }) => name);
    expect(await names()).toEqual(["a", "s"]);
    named = ["b", "c"];
    expect(await names()).toEqual(["b", "c", "s"]);
  });
});
