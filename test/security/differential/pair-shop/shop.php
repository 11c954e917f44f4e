<?php
// A shop of resource and id pairs on Symfony's own Request and routers: says which actions a request would run.
// The first line gives the routes, every other one a request; a line of JSON comes back for each request.
foreach (['HttpFoundation', 'Routing'] as $component) {
    require getenv('SYMFONY') . "/Component/$component/autoload.php";
}

use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\Routing\Exception\ExceptionInterface;
use Symfony\Component\Routing\Exception\ResourceNotFoundException;
use Symfony\Component\Routing\Matcher\CompiledUrlMatcher;
use Symfony\Component\Routing\Matcher\Dumper\CompiledUrlMatcherDumper;
use Symfony\Component\Routing\Matcher\RequestMatcherInterface;
use Symfony\Component\Routing\RequestContext;
use Symfony\Component\Routing\Route;
use Symfony\Component\Routing\RouteCollection;

error_reporting(E_ALL & ~E_DEPRECATED & ~E_USER_DEPRECATED);
Request::enableHttpMethodParameterOverride();

// What may stand in front of the pairs: nothing, the reference shop's version with its prefix `v`, one with any prefix.
$versions = ['off' => null, 'v' => 'v\d+(?:\.\d+)?', 'any' => '[A-Za-z]*\d+(?:\.\d+)*'];

/** The path as the shop trims it, without a version; split into pairs. */
function pairsOf(string $path, ?string $version): array
{
    $segments = explode('/', trim($path, '\/'));
    if ($version !== null && preg_match("~^$version\$~D", $segments[0])) {
        array_shift($segments);
    }
    return array_map(fn ($pair) => [$pair[0], $pair[1] ?? null], array_chunk($segments, 2));
}

/** The reference shop's way: octets as they came, the last pair is the resource, parents are any pairs before it. */
final class PairMatcher implements RequestMatcherInterface
{
    public function __construct(private array $routes, private ?string $version)
    {
    }

    public function matchRequest(Request $request): array
    {
        $pairs = pairsOf($request->getPathInfo(), $this->version);
        $last = array_pop($pairs);
        $before = array_column($pairs, 0);
        $met = [];
        foreach ($this->routes[$last[0] ?? ''] ?? [] as [$method, $parents, , $number]) {
            if ($method === $request->getMethod() && array_diff($parents, $before) === []) {
                $met[] = $number;
            }
        }
        $ids = [...array_column($pairs, 1), $last[1] ?? null];
        return $met === [] ? throw new ResourceNotFoundException() : ['_route' => $met, 'ids' => $ids];
    }
}

/** The same grammar as routes of Symfony's own matcher, which decodes the path, and takes HEAD for GET. */
final class RouteMatcher implements RequestMatcherInterface
{
    private array $compiled;

    public function __construct(array $routes, private ?string $version)
    {
        $all = new RouteCollection();
        // Longer ones first, since the first that is met is taken.
        usort($routes, fn ($one, $other) => count($other[1]) - count($one[1]));
        $any = '(?:[^/]*/[^/]*/)*?';
        foreach ($routes as [$method, $parents, $type, $number]) {
            $chain = implode('', array_map(fn ($parent) => $any . preg_quote($parent) . '/[^/]*/', $parents)) . $any;
            $rules = ['version' => $version === null ? '(?:)' : "(?:$version/)?+", 'chain' => $chain, 'id' => '(?:/[^/]*)?'];
            $route = new Route('/{version}{chain}' . $type . '{id}', [], $rules, [], '', [], [$method]);
            $all->add((string) $number, $route);
        }
        $this->compiled = (new CompiledUrlMatcherDumper($all))->getCompiledRoutes();
    }

    public function matchRequest(Request $request): array
    {
        $context = (new RequestContext())->setMethod($request->getMethod());
        $met = (new CompiledUrlMatcher($this->compiled, $context))->match('/' . trim($request->getPathInfo(), '\/'));
        $before = array_column(array_chunk(explode('/', $met['chain']), 2), 1);
        return ['_route' => [(int) $met['_route']], 'ids' => [...$before, $met['id'] === '' ? null : substr($met['id'], 1)]];
    }
}

/** The request as PHP gives it to a shop behind a web server that hands everything to /index.php. */
function requestOf(array $sent): Request
{
    $server = ['REQUEST_METHOD' => $sent['method'], 'REQUEST_URI' => $sent['target'], 'SCRIPT_NAME' => '/index.php',
        'SCRIPT_FILENAME' => '/srv/public/index.php', 'PHP_SELF' => '/index.php', 'SERVER_PROTOCOL' => 'HTTP/1.1',
        'QUERY_STRING' => explode('?', $sent['target'], 2)[1] ?? ''];
    for ($i = 0; $i < count($sent['fields']); $i += 2) {
        $name = strtr(strtoupper($sent['fields'][$i]), '-', '_');
        $name = in_array($name, ['CONTENT_TYPE', 'CONTENT_LENGTH'], true) ? $name : "HTTP_$name";
        $server[$name] = isset($server[$name]) ? "$server[$name], {$sent['fields'][$i + 1]}" : $sent['fields'][$i + 1];
    }
    parse_str($server['QUERY_STRING'], $query);
    $body = base64_decode($sent['body']);
    $type = strtolower(trim(preg_split('~[;,\s]~', ltrim($server['CONTENT_TYPE'] ?? ''))[0]));
    $form = [];
    if ($sent['method'] === 'POST' && $type === 'application/x-www-form-urlencoded') {
        parse_str($body, $form);
    } elseif ($sent['method'] === 'POST' && $type === 'multipart/form-data') {
        preg_match_all('~name="?([^"\r\n;]*)"?[^\r\n]*(?:\r\n[^\r\n]+)*\r\n\r\n(.*?)\r\n--~s', $body, $parts, PREG_SET_ORDER);
        foreach ($parts as [, $name, $value]) {
            parse_str(urlencode($name) . '=' . urlencode($value), $part);
            $form = array_replace($form, $part);
        }
    }
    return new Request($query, $form, [], [], [], $server, $body);
}

/** Every text that the shop may take for a refresh token. */
function tokensOf(Request $request): array
{
    $json = json_decode($request->getContent(), true);
    $found = [$json['data']['attributes']['refreshToken'] ?? null, $json['refresh_token'] ?? null,
        $json['refreshToken'] ?? null];
    foreach ([$request->request->all(), $request->query->all()] as $params) {
        array_push($found, $params['refresh_token'] ?? null, $params['refreshToken'] ?? null);
    }
    return array_values(array_filter($found, 'is_string'));
}

function judge(array $sent, array $matchers): array
{
    $actions = [];
    foreach ($matchers as [$mode, $reading, $matcher]) {
        $request = requestOf($sent);
        try {
            ['_route' => $met, 'ids' => $ids] = $matcher->matchRequest($request);
        } catch (ExceptionInterface | UnexpectedValueException) {
            continue;
        }
        foreach ($met as $number) {
            $actions[] = ['route' => $number, 'method' => $request->getMethod(), 'versions' => $mode, 'reading' => $reading,
                'hasId' => end($ids) !== null, 'hasEmptyId' => in_array('', $ids, true)];
        }
    }
    return ['actions' => $actions, 'tokens' => tokensOf(requestOf($sent))];
}

$routes = [];
foreach (json_decode(fgets(STDIN), true) as $number => [$method, $parents, $type]) {
    $routes[] = [$method, $parents, $type, $number];
}
$byType = [];
foreach ($routes as $route) {
    $byType[$route[2]][] = $route;
}
$matchers = [];
foreach ($versions as $mode => $version) {
    $matchers[] = [$mode, 'as it came', new PairMatcher($byType, $version)];
    $matchers[] = [$mode, 'decoded', new RouteMatcher($routes, $version)];
}
while (($line = fgets(STDIN)) !== false) {
    echo json_encode(judge(json_decode($line, true), $matchers), JSON_INVALID_UTF8_SUBSTITUTE), "\n";
}
