/** What a context carries for commands of features, without knowing what it is. */
export type Services = ReadonlyMap<symbol, unknown>;

export interface WithServices {
  services: Services;
}

/** Names a service of a feature, and has its type. */
export interface ServiceKey<Service> {
  /** The service that this context carries. Throws where nothing provides it. */
  (context: WithServices): Service;
  /** An entry for `Services`. */
  providedBy(service: Service): readonly [symbol, unknown];
}

/** `const alertsOf = defineService<Alerts>("alerts")`: then `alertsOf(context)` is what the feature provides. */
export function defineService<Service>(name: string): ServiceKey<Service> {
  const key = Symbol(name);
  const of = ({ services }: WithServices): Service => {
    if (!services.has(key)) throw new Error(`nothing provides ${name} here`);
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only `providedBy` knows the key
    return services.get(key) as Service;
  };
  return Object.assign(of, { providedBy: (service: Service) => [key, service] as const });
}
