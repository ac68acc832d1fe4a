const LOCAL = 'localhost,127.0.0.1,::1';

/** Returns the variables by which programs find the proxy of a limited network. */
export function proxyVariables(proxy: string): Record<string, string> {
  const both = (name: string, value: string) => ({ [name]: value, [name.toLowerCase()]: value });
  return {
    ...both('HTTP_PROXY', proxy),
    ...both('HTTPS_PROXY', proxy),
    ...both('ALL_PROXY', proxy),
    ...both('NO_PROXY', LOCAL),
    // Node's own fetch reads the other variables only if this variable is set.
    NODE_USE_ENV_PROXY: '1',
  };
}
