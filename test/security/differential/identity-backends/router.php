<?php
// Prints all variables that a PHP program gets from the request's fields, and from its trailers if PHP reads any.
$seen = [];
foreach ($_SERVER as $name => $value) {
    if (str_starts_with($name, 'HTTP_')) {
        $seen[$name] = $value;
    }
}
file_get_contents('php://input');
header('Content-Type: application/json');
echo json_encode($seen, JSON_INVALID_UTF8_SUBSTITUTE);
