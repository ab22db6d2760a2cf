import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ChangingFile, type FileNews } from "../../src/config/changing-file.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "gatehouse-changing-"));
});
afterEach(() => {
  vi.useRealTimers();
  rmSync(folder, { recursive: true });
});

/** As Kubernetes does it: the file is a link into `..data`, which is a link that is swapped. */
function mount(version: string, text: string): string {
  mkdirSync(path.join(folder, version));
  writeFileSync(path.join(folder, version, "key"), text);
  symlinkSync(version, path.join(folder, "..data_tmp"));
  renameSync(path.join(folder, "..data_tmp"), path.join(folder, "..data"));
  return path.join(folder, "..data", "key");
}

describe("a file that changes", () => {
  it("is read again after two seconds of use, through a link that was swapped", () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    const file = new ChangingFile(mount("v1", "key-1\n"));
    const news: FileNews[] = [];
    file.onNews = (one) => news.push(one);
    mount("v2", "key-2\n");
    expect(file.text).toBe("key-1");
    vi.advanceTimersByTime(2_000);
    expect(file.text).toBe("key-2");
    expect(news).toEqual([{ kind: "changed", text: "key-2" }]);
  });

  it("is read at once when asked, and says whether it changed", () => {
    const file = new ChangingFile(mount("v1", "key-1"));
    expect(file.reread()).toBe(false);
    mount("v2", "key-2");
    expect([file.reread(), file.reread(), file.text]).toEqual([true, false, "key-2"]);
  });

  it("keeps the former text while the new one can't be right, and tells why once", () => {
    const place = mount("v1", "key-1");
    const file = new ChangingFile(place);
    const news: FileNews[] = [];
    file.onNews = (one) => news.push(one);
    file.problemOf = (text) => (text.startsWith("key-") ? undefined : "is no key");
    const look = () => [file.reread(), file.reread(), file.text];
    writeFileSync(place, "\n");
    expect(look()).toEqual([false, false, "key-1"]);
    writeFileSync(place, "hunter22");
    expect(look()).toEqual([false, false, "key-1"]);
    rmSync(place);
    expect(look()).toEqual([false, false, "key-1"]);
    writeFileSync(place, "key-2");
    expect(look()).toEqual([true, false, "key-2"]);
    expect(news).toEqual([
      { kind: "kept", why: "it is empty" },
      { kind: "kept", why: "is no key" },
      { kind: "kept", why: "it can't be read (ENOENT)" },
      { kind: "changed", text: "key-2" },
    ]);
  });
});
