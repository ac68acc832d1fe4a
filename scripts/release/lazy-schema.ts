/**
 * Returns an object that behaves like the schema of `make`, which it calls on first use: a short call of the command
 * line needs some twenty of over a hundred schemas.
 */
export function lazySchema<Schema extends object>(make: () => Schema): Schema {
  let made: Schema | undefined;
  const schema = (): Schema => {
    made ??= make();
    return made;
  };
  return new Proxy({} as Schema, {
    get: (_none, name) => Reflect.get(schema(), name),
    has: (_none, name) => Reflect.has(schema(), name),
    getPrototypeOf: () => Reflect.getPrototypeOf(schema()),
    // For the spread of an object of schemas into another.
    ownKeys: () => Reflect.ownKeys(schema()),
    getOwnPropertyDescriptor: (_none, name) => {
      const own = Reflect.getOwnPropertyDescriptor(schema(), name);
      return own && { ...own, configurable: true };
    },
  });
}
