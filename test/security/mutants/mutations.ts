import { stripTypeScriptTypes } from 'node:module';
import { type AnyNode, parse } from 'acorn';

/** One small change of a source file. */
export interface Mutation {
  /** Its first line, counted from 1. */
  readonly line: number;
  readonly start: number;
  readonly end: number;
  readonly before: string;
  readonly after: string;
}

/** The replacements of each operator; each is a mutation. */
const operators: Readonly<Record<string, readonly string[]>> = {
  '===': ['!=='],
  '!==': ['==='],
  '<': ['<=', '>='],
  '<=': ['<', '>'],
  '>': ['>=', '<='],
  '>=': ['>', '<'],
  '&&': ['||'],
  '||': ['&&'],
  '-': ['+'],
  '*': ['/'],
  '&': ['|'],
  '+=': ['-='],
  '-=': ['+='],
};

/** All mutations of a TypeScript source, without its types. Positions are those in the file. */
export function findMutations(source: string): Mutation[] {
  // Types become spaces.
  const code = stripTypeScriptTypes(source);
  const found: Mutation[] = [];
  const change = (start: number, end: number, after: string) => {
    const line = code.slice(0, start).split('\n').length;
    found.push({ line, start, end, before: source.slice(start, end), after });
  };
  const textOf = ({ start, end }: AnyNode) => source.slice(start, end);
  for (const node of nodesOf(parse(code, { ecmaVersion: 'latest', sourceType: 'module' }))) {
    switch (node.type) {
      case 'BinaryExpression':
      case 'LogicalExpression':
      case 'AssignmentExpression': {
        const start = node.left.end + code.slice(node.left.end, node.right.start).indexOf(node.operator);
        for (const other of operators[node.operator] ?? [])
          change(start, start + node.operator.length, other);
        break;
      }
      case 'UnaryExpression':
        if (node.operator === '!') change(node.start, node.argument.start, '');
        break;
      case 'IfStatement':
        change(node.test.start, node.test.end, 'true');
        change(node.test.start, node.test.end, 'false');
        break;
      case 'ConditionalExpression':
        change(node.test.start, node.test.end, `!(${textOf(node.test)})`);
        break;
      case 'Literal':
        if (typeof node.value === 'boolean') change(node.start, node.end, String(!node.value));
        if (typeof node.value === 'number') change(node.start, node.end, `(${textOf(node)} + 1)`);
        break;
      case 'ArrayExpression':
        for (const [i, element] of node.elements.entries()) {
          const next = node.elements[i + 1];
          if (element?.type === 'Literal' && node.elements.length > 1)
            change(element.start, next?.start ?? element.end, '');
        }
        break;
      case 'ExpressionStatement':
        // Without its `super` call, a constructor always throws.
        if (/^(await\s+)?(this\.)?[#\w.?]+\(/.test(textOf(node)) && !textOf(node).startsWith('super('))
          change(node.start, node.end, ';');
        break;
      case 'AwaitExpression':
        change(node.start, node.argument.start, '');
        break;
      case 'ReturnStatement':
        if (node.argument && textOf(node.argument) !== 'undefined') change(node.start, node.end, 'return;');
        break;
    }
  }
  return found;
}

/** The source with the mutation in it. */
export function applyMutation(source: string, { start, end, after }: Mutation): string {
  return source.slice(0, start) + after + source.slice(end);
}

function* nodesOf(node: AnyNode): Generator<AnyNode> {
  yield node;
  for (const value of Object.values(node)) {
    for (const child of Array.isArray(value) ? value : [value]) {
      if (typeof child?.type === 'string') yield* nodesOf(child as AnyNode);
    }
  }
}
