import type { Storm } from "../../../sandbox/compute/weather.ts";

export interface ServiceCall {
  n: number;
  at: number;
  method: string;
  path: string;
  effect: boolean;
  answer?: number | string;
  /** Ids of the weather that struck it. */
  weather: readonly number[];
}

export interface VmFacts {
  id: string;
  name: string;
  status: string;
  starts: number;
  stops: number;
  restarts: number;
}

/** The sandbox of the compute service, asked over its control port. */
export interface Service {
  weather(weather: Storm): Promise<number>;
  clear(id?: number): Promise<void>;
  edit(name: string, input: object): Promise<unknown>;
  writes(): Promise<ServiceCall[]>;
  calls(): Promise<ServiceCall[]>;
  vm(id: string): Promise<VmFacts>;
  vms(): Promise<VmFacts[]>;
  settled(): Promise<void>;
}

export function service(controlUrl: string): Service {
  const ask = async <T>(method: string, path: string, body?: object): Promise<T> => {
    const response = await fetch(`${controlUrl}/_sandbox/${path}`, {
      method,
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    const answer = (await response.json()) as T & { error?: string };
    if (!response.ok) throw new Error(`${method} ${path}: ${answer.error}`);
    return answer;
  };
  const vms = async () =>
    Object.values((await ask<{ vms: Record<string, VmFacts> }>("GET", "truth")).vms);
  return {
    weather: async (weather) => (await ask<{ id: number }>("POST", "weather", weather)).id,
    clear: async (id) =>
      void (await ask("DELETE", id === undefined ? "weather" : `weather?id=${id}`)),
    edit: (name, input) => ask("POST", `edit/${name}`, input),
    writes: () => ask("GET", "writes"),
    calls: () => ask("GET", "calls"),
    vms,
    vm: async (id) => {
      const found = (await vms()).find((vm) => vm.id === id || vm.name === id);
      if (!found) throw new Error(`no VM ${id}`);
      return found;
    },
    settled: async () => void (await ask("GET", "settled")),
  };
}
