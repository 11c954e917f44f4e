/**
 * The rule for callbacks: no code is above a socket listener, a timer or an unawaited promise, so an error thrown there
 * ends the process and all its requests. Each callback in src must therefore be unable to throw, as far as its syntax
 * shows: it calls only the functions listed here as harmless, functions of its own file that pass the same test, and
 * anything inside a `try` with a `catch`. Other callbacks use `isolated`, `isolate` or `isolateLate` of src/lib/faults.ts.
 * Exits 1 and names each callback that may throw, with the call.
 */
import { globSync, readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import type { AnyNode, CallExpression, Function as FunctionNode } from 'acorn';
import { parse } from 'acorn';

/** The command line and src/cluster start and end processes: an error there ends only that process. */
const exempt = /^src\/(?:main\.ts|(?:cli|cluster)\/)/;

/** `file: callback` -> why it cannot throw, although its syntax does not show that. */
const allowed: Readonly<Record<string, string>> = {};

const listening = new Set(['on', 'once', 'addListener', 'prependListener', 'prependOnceListener']);
const scheduling = new Set(['setTimeout', 'setInterval', 'setImmediate', 'queueMicrotask', 'nextTick']);
/** Methods whose last argument is a callback, called after the kernel has answered. */
const finishing = new Set(['write', 'end', 'close', 'listen']);
/** Options whose functions Node calls from its event loop. */
const options = new Set(['callback', 'shouldUpgradeCallback', 'lookup', 'SNICallback', 'ALPNCallback']);

/** Functions that do not throw if their arguments have the declared types. */
const harmlessFunctions = new Set(
  ['clearTimeout', 'clearInterval', 'setTimeout', 'setInterval', 'setImmediate', 'queueMicrotask'].concat([
    'isolate',
    'isolateLate',
    'endAlone',
    'Number',
    'String',
    'Boolean',
    'isRejection',
  ]),
);
const harmlessClasses = new Set([
  'Error',
  'TypeError',
  'Map',
  'Set',
  'RedisUnavailable',
  'MalformedResponse',
]);
/** Methods of sockets, streams, timers and collections that do not throw. */
const harmlessMethods = new Set(
  [
    'destroy',
    'destroySoon',
    'resetAndDestroy',
    'pause',
    'resume',
    'isPaused',
    'unref',
    'ref',
    'refresh',
  ].concat(
    [
      'on',
      'once',
      'off',
      'removeAllListeners',
      'delete',
      'has',
      'get',
      'set',
      'add',
      'clear',
      'push',
      'shift',
    ],
    [
      'values',
      'keys',
      'now',
      'abs',
      'min',
      'max',
      'toLowerCase',
      'address',
      'resolve',
      'slice',
      'splice',
      'forEach',
      'floor',
      'load',
      'uncork',
      'fromEntries',
      'isInteger',
      'includes',
      'test',
      'startsWith',
      'exec',
      'indexOf',
      'entries',
      'from',
      'random',
      'subarray',
      'take',
      'isBuffer',
      'kill',
      'exit',
      'terminate',
      'abort',
    ],
  ),
);
/**
 * Names of functions passed in by a caller: `resolve` and `reject` only end a promise, and `taken` is checked where it
 * is passed.
 */
const handedOn = new Set(['resolve', 'reject', 'taken']);
/** Methods of promises; their callbacks are checked here. */
const chaining = new Set(['then', 'catch', 'finally']);
const safeElsewhere: Readonly<Record<string, string>> = {};

interface SourceFile {
  readonly path: string;
  readonly code: string;
  readonly functions: ReadonlyMap<string, readonly FunctionNode[]>;
}

const complaints: string[] = [];
const unused = new Set(Object.keys(allowed));
let checked = 0;
for (const path of globSync('src/**/*.ts').filter((name) => !exempt.test(name))) {
  if (!path.includes('/console/')) checkFile(path);
}
for (const licence of unused)
  complaints.push(`scripts/check-isolation.ts: nothing needs the exception for ${licence}`);
for (const complaint of complaints) console.error(complaint);
if (complaints.length > 0) process.exit(1);
console.log(`isolation: ${checked} callbacks and unawaited promises, none of which can end the process`);

function checkFile(path: string): void {
  const code = stripTypeScriptTypes(readFileSync(path, 'utf8'));
  const program = parse(code, { ecmaVersion: 'latest', sourceType: 'module' });
  const file = { path, code, functions: functionsOf(program) };
  for (const [name, where] of Object.entries(safeElsewhere)) {
    if (where !== path) continue;
    const [known] = file.functions.get(`this.${name}`) ?? [];
    if (known === undefined) complaints.push(`${path}: has no ${name}`);
    else check(file, known as AnyNode, whyFunction(file, known, new Set()));
  }
  for (const node of nodesOf(program)) {
    for (const callback of callbacksOf(file, node)) check(file, callback, mayThrow(file, callback));
    const promise = unawaitedOf(file, node);
    if (promise !== undefined) check(file, promise, mayReject(file, promise));
  }
}

function check({ path, code }: SourceFile, node: AnyNode, why: string | undefined): void {
  checked += 1;
  if (why === undefined) return;
  const text = code.slice(node.start, node.end).replace(/\s+/g, ' ').slice(0, 80);
  const name = `${path}: ${text}`;
  if (name in allowed) unused.delete(name);
  else complaints.push(`${path}:${code.slice(0, node.start).split('\n').length}: ${text}: ${why}`);
}

/** The functions that Node calls later, with no code above them. */
function callbacksOf(file: SourceFile, node: AnyNode): AnyNode[] {
  if (node.type === 'Property' && node.key.type === 'Identifier' && options.has(node.key.name)) {
    return isFunction(node.value) ? [node.value] : [];
  }
  if (node.type !== 'CallExpression') return [];
  const name = nameOf(node.callee);
  const given = node.arguments.at(-1);
  const last = given?.type === 'LogicalExpression' ? given.right : given;
  if (name === undefined || last === undefined) return [];
  const isEvent = node.callee.type === 'MemberExpression' && node.arguments.length === 2;
  if (listening.has(name)) return isEvent ? [last] : [];
  if (scheduling.has(name)) return isTimerOfNode(node) ? [node.arguments[0] as AnyNode] : [];
  const isKnown = isFunction(last) || file.functions.has(ownNameOf(last) ?? '');
  return finishing.has(name) && !isQueue(node.callee) && node.callee.type === 'MemberExpression' && isKnown
    ? [last]
    : [];
}

/** Calls of the retry queue are excluded: it awaits the function. */
function isQueue(callee: AnyNode): boolean {
  return callee.type === 'MemberExpression' && nameOf(callee.object) === 'retries';
}

/** `node:timers/promises` has functions of the same names; sockets have a `setTimeout`. */
function isTimerOfNode({ callee, arguments: given }: CallExpression): boolean {
  const isGlobal = callee.type === 'Identifier' || nameOf(callee) === 'nextTick' || isOfGlobal(callee);
  return isGlobal && isFunctionLike(given[0]) && !/Ms$/.test(nameOf(given[0]) ?? '');
}

function isOfGlobal(callee: AnyNode): boolean {
  return callee.type === 'MemberExpression' && nameOf(callee.object) === 'globalThis';
}

function isFunctionLike(node: AnyNode | undefined): node is AnyNode {
  const types = [
    'ArrowFunctionExpression',
    'FunctionExpression',
    'Identifier',
    'CallExpression',
    'MemberExpression',
  ];
  return node !== undefined && types.includes(node.type);
}

/** A promise that is a statement, or the operand of `void`: its rejection would be an uncaught error. */
function unawaitedOf(file: SourceFile, node: AnyNode): CallExpression | undefined {
  if (node.type === 'UnaryExpression' && node.operator === 'void') return callOf(node.argument);
  const call = node.type === 'ExpressionStatement' ? callOf(node.expression) : undefined;
  if (call === undefined) return undefined;
  const isChain = chaining.has(nameOf(call.callee) ?? '') && call.callee.type === 'MemberExpression';
  const known = file.functions.get(ownNameOf(call.callee) ?? '');
  return isChain || known?.some((one) => one.async === true) ? call : undefined;
}

function callOf(node: AnyNode): CallExpression | undefined {
  const inner = node.type === 'ChainExpression' ? node.expression : node;
  return inner.type === 'CallExpression' ? inner : undefined;
}

function mayReject(file: SourceFile, call: CallExpression): string | undefined {
  const name = nameOf(call.callee);
  const isMethod = call.callee.type === 'MemberExpression';
  if (isMethod && name === 'catch') return mayThrow(file, call.arguments[0]);
  if (isMethod && name === 'then') {
    if (call.arguments.length < 2) return 'nothing handles its rejection';
    return call.arguments.map((one) => mayThrow(file, one)).find((why) => why !== undefined);
  }
  if (isMethod && name === 'finally') return 'nothing handles its rejection';
  if (isMethod && (harmlessMethods.has(name ?? '') || finishing.has(name ?? ''))) return undefined;
  return whyCall(file, call, new Set(), true);
}

/** Why the callback may throw; undefined: it cannot. */
function mayThrow(
  file: SourceFile,
  callback: AnyNode | undefined,
  seen = new Set<AnyNode>(),
): string | undefined {
  if (callback === undefined) return undefined;
  if (callback.type === 'ArrowFunctionExpression' || callback.type === 'FunctionExpression') {
    return whyFunction(file, callback as FunctionNode, seen);
  }
  // For the result of `isolated` see `functionsOf`.
  if (callback.type === 'CallExpression') {
    const name = nameOf(callback.callee) ?? '';
    if (name === 'isolated') return undefined;
    const made =
      file.functions.get(ownNameOf(callback.callee) ?? '')?.map(({ body }) => body as AnyNode) ?? [];
    if (made.length === 0 || !made.every(isFunction)) return `${source(file, callback.callee)} makes it`;
    return made.map((one) => mayThrow(file, one, seen)).find((why) => why !== undefined);
  }
  return whyNamed(file, ownNameOf(callback) ?? source(file, callback), seen);
}

function whyNamed(file: SourceFile, name: string, seen: Set<AnyNode>): string | undefined {
  if (handedOn.has(name) || harmlessFunctions.has(name)) return undefined;
  const known = file.functions.get(name);
  if (known === undefined)
    return name.replace('this.', '') in safeElsewhere ? undefined : `${name} is not defined in this file`;
  return known.map((one) => whyFunction(file, one, seen)).find((why) => why !== undefined);
}

function whyFunction(file: SourceFile, node: FunctionNode, seen: Set<AnyNode>): string | undefined {
  // A recursive call adds no other reason.
  if (seen.has(node as AnyNode)) return undefined;
  seen.add(node as AnyNode);
  for (const inner of unguardedNodesOf(node.body)) {
    const why = whyNode(file, inner, seen);
    if (why !== undefined) return why;
  }
  return undefined;
}

function whyNode(file: SourceFile, node: AnyNode, seen: Set<AnyNode>): string | undefined {
  if (node.type === 'ThrowStatement') return 'throws';
  if (node.type === 'AwaitExpression') {
    const call = callOf(node.argument);
    const isCaught = call !== undefined && nameOf(call.callee) === 'catch';
    return isCaught || (call !== undefined && whyCall(file, call, seen, true) === undefined)
      ? undefined
      : `awaits ${source(file, node.argument)}`;
  }
  if (node.type === 'NewExpression') {
    return harmlessClasses.has(nameOf(node.callee) ?? '')
      ? undefined
      : `makes a ${source(file, node.callee)}`;
  }
  return node.type === 'CallExpression' ? whyCall(file, node, seen) : undefined;
}

function whyCall(
  file: SourceFile,
  call: CallExpression,
  seen: Set<AnyNode>,
  isAwaited = false,
): string | undefined {
  const { callee } = call;
  const own = ownNameOf(callee);
  if (own === undefined) {
    // The callbacks of a promise chain are checked at the statement that has the chain.
    const name = nameOf(callee) ?? '';
    const isFine = harmlessMethods.has(name) || chaining.has(name) || isLog(callee);
    return isFine ? undefined : `calls ${source(file, callee)}`;
  }
  const known = file.functions.get(own) ?? [];
  // An async function rejects instead of throwing: the statement that has the promise is checked.
  if (!isAwaited && known.length > 0 && known.every((one) => one.async === true)) return undefined;
  const why = whyNamed(file, own, seen);
  return why === undefined ? undefined : `calls ${source(file, callee)}, which ${why}`;
}

/** The nodes that run when this node runs, and whose error no `try` inside it catches. */
function* unguardedNodesOf(value: unknown): Generator<AnyNode> {
  if (typeof value !== 'object' || value === null) return;
  if ('type' in value) {
    const node: AnyNode = value as AnyNode;
    if (isFunction(node)) return;
    if (node.type === 'TryStatement' && node.handler) {
      yield* unguardedNodesOf(node.handler.body);
      yield* unguardedNodesOf(node.finalizer);
      return;
    }
    yield node;
  }
  for (const part of Object.values(value)) yield* unguardedNodesOf(part);
}

function* nodesOf(value: unknown): Generator<AnyNode> {
  if (typeof value !== 'object' || value === null) return;
  if ('type' in value) yield value as AnyNode;
  for (const part of Object.values(value)) yield* nodesOf(part);
}

/** The logger writes into its own buffer, and catches errors of its output. */
function isLog(callee: AnyNode): boolean {
  return callee.type === 'MemberExpression' && nameOf(callee.object) === 'log';
}

/** Functions by name; a name may stand for several. A result of `isolated` counts as a function without a body. */
function functionsOf(program: AnyNode): Map<string, FunctionNode[]> {
  const functions = new Map<string, FunctionNode[]>();
  const know = (name: string | undefined, value: AnyNode | null | undefined) => {
    if (name === undefined || !value) return;
    const isIsolated = value.type === 'CallExpression' && nameOf(value.callee) === 'isolated';
    const known = functions.get(name) ?? [];
    if (isIsolated) functions.set(name, known);
    else if (isFunction(value)) functions.set(name, [...known, value as FunctionNode]);
  };
  for (const node of nodesOf(program)) {
    if (node.type === 'FunctionDeclaration') know(node.id?.name, node as AnyNode);
    else if (node.type === 'VariableDeclarator') know(nameOf(node.id), node.init);
    else if (node.type === 'MethodDefinition' || node.type === 'PropertyDefinition')
      know(memberName(node.key), node.value as AnyNode | null);
  }
  return functions;
}

function isFunction(node: AnyNode): boolean {
  return ['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression'].includes(node.type);
}

function nameOf(node: AnyNode): string | undefined {
  if (node.type === 'Identifier' || node.type === 'PrivateIdentifier') return node.name;
  return node.type === 'MemberExpression' && !node.computed ? nameOf(node.property) : undefined;
}

/** The name of a function of this file: `run`, or `this.run` for a member. */
function ownNameOf(node: AnyNode): string | undefined {
  if (node.type === 'Identifier') return node.name;
  const isMember = node.type === 'MemberExpression' && node.object.type === 'ThisExpression';
  return isMember ? memberName(node.property) : undefined;
}

function memberName(key: AnyNode): string {
  return key.type === 'PrivateIdentifier' ? `this.#${key.name}` : `this.${nameOf(key)}`;
}

function source({ code }: SourceFile, node: AnyNode): string {
  return code.slice(node.start, node.end).replace(/\s+/g, ' ').slice(0, 60);
}
