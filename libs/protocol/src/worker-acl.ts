/**
 * Returns the rules of the Redis user of a worker (Redis 7), which may write all keys of the fleet. They follow the
 * name in `ACL SETUSER`.
 */
export function workerAclRules(namespace: string): string[] {
  return [
    `~${namespace}:*`,
    `&${namespace}:*`,
    '-@all',
    ...['+@read', '+@write', '+@connection', '+@transaction', '+@pubsub'],
    '-@dangerous',
    ...['+info', '+time', '+eval', '+evalsha', '+script|load'],
  ];
}
